"""What a read or write is asked to do: options, access keys, positions and ranges. Pure; no network, no Spark.

option_values.py    typed reading of option texts
spelling.py         the name that a misspelt one, or one of Spark's Kafka connector, may mean
access_names.py     access keys, TLS and addresses as options
topic_options.py    the options of the source `rocketmq`
positions.py        queues, offsets and the position of a stream, as JSON
spark_processes.py  what Spark's workers, and its processes that plan reads, need
ranges.py           ranges of messages: split into tasks, limited to a batch, clamped to what a queue holds
"""
