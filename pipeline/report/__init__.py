"""pocketmq.pipeline.report

output.py    What every job does with its result
page.py      One HTML file with everything in it
terminal.py  Tables on a terminal that can be read there
"""
