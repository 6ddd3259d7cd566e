"""The jobs of `pocketmq pipeline` that send messages or write tables of them.

dlq.py              dead letters: what is dead and why
dead_letters.py     which dead letters a job is about
dlq_resend.py       dead letters sent back
copies.py           messages sent again as they are
replay.py           sends messages again
export.py           messages to Parquet
ingest.py           topics to Parquet, Delta or Iceberg tables, as a stream
mirror.py           topics to another cluster, continuously
mirroring.py        one round of a mirror
mirror_lease.py     so that two mirrors of one name never copy the same
mirror_queues.py    which queue takes the copies of which
mirror_positions.py where a mirror is, in memory and as offsets of its group
mirror_recovery.py  copies that may have been stored without an answer
offset_map.py       which offset of a copy belongs to which offset of its source
"""
