"""What a read or write is asked to do: options, access keys, positions and ranges. Pure; no network, no Spark.

absolute_paths.py   paths that mean the same in every process
option_values.py    typed reading of option texts
spelling.py         the name that a misspelt topic or group may mean
kafka_names.py      what Spark's Kafka connector calls options and columns, for error messages
access_names.py     access keys, TLS and addresses as options
topic_options.py    the options of the source `rocketmq`
positions.py        queues, offsets and the position of a stream, as JSON
parallelism.py      how many tasks a session runs at once
gc_freeze.py        garbage collection in Spark's workers
ranges.py           ranges of messages: split into tasks, limited to a batch, clamped to what a queue holds
"""
