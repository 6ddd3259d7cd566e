"""The readers that Spark calls: data sources `rocketmq`, `rocketmq-store` and `pocketmq-journal`.

output_schema.py    record batches with the columns of the user's schema
default_columns.py  the columns of messages if the user gives no schema
topic_source.py     the data source `rocketmq`, which creates the readers and writers below
topic_reader.py     its batch reader, also with `pushdown=true`
hybrid_reader.py    a range from the broker's files, the rest from the broker (`storePath`)
topic_stream.py     its stream reader
filters.py          filters of a query as one Arrow expression
task_reader.py      stores and journals: a task of Spark for each task of a table
store_source.py     the data source `rocketmq-store`
journal_source.py   the data source `pocketmq-journal`
"""
