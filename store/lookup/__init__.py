"""pocketmq.store.lookup

consume_queue.py  A consume queue
dispatch.py       From the log to the queues and the index
key_hash.py       Hashes of index keys, fast
key_index.py      The key index
light_queues.py   Light message queues
queue_table.py    All consume queues of the store, by topic and queue id, as they lie under `con
queue_unit.py: the 20 bytes of a queue, and where a queue ends
index_file.py: one file of the key index
log_dispatch.py: dispatch of records that are in the log only
"""
