"""pocketmq.pipeline.sources

journal_source.py  The data source `pocketmq-journal`
store_source.py    The data source `rocketmq-store`
topic_source.py    The data source `rocketmq`
topic_stream.py    Streams of the data source `rocketmq`
"""
