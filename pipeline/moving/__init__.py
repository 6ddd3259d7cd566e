"""The jobs of `pocketmq pipeline` that send messages or write tables of them.

dlq.py              dead letters: what is dead and why
dead_letters.py     which dead letters a job is about
sending_back.py     dead letters sent back
copies.py           messages sent again as they are
replay.py           sends messages again
export.py           messages to Parquet
ingest.py           topics to Parquet, Delta or Iceberg tables, as a stream
mirror.py           topics to another cluster, continuously
mirroring.py        one round of a mirror
offset_map.py       which offset of a copy belongs to which offset of its source
"""
