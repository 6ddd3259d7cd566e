"""Data frames as messages: the write side of the format `rocketmq`.

sink_options.py     options and columns of the sink
topic_writer.py     the batch writer and the stream writer, as Spark calls them
task_sender.py      record batches of one task to requests
transactions.py     half messages committed or rolled back, and which batch was committed last
"""
