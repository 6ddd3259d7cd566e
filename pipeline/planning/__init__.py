"""pocketmq.pipeline.planning

positions.py      Offsets and ranges
topic_options.py  Options of the `rocketmq` source
"""
