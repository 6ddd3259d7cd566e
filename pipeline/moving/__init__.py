"""The jobs of `pocketmq pipeline` that send messages or write tables of them.

dlq.py              dead letters: what is dead and why
dead_letters.py     which dead letters a job is about
sending_back.py     dead letters sent back
copies.py           messages sent again as they are
replay.py           sends messages again
export.py           messages to Parquet
ingest.py           topics to Parquet, Delta or Iceberg tables, as a stream
"""
