"""pocketmq.pipeline.behaviour

drawing.py    The drawings of the behaviour report
job.py        What clients really did, from a broker's journal
ownership.py  Who read which queue when
"""
