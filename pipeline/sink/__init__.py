"""pocketmq.pipeline.sink

sink_options.py  Options and columns of the sink
topic_writer.py  The sink of `rocketmq`
transactions.py  The transactional sink's second half
"""
