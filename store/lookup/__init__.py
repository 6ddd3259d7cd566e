"""What finds a message: queues by offset, the index by key. All of it can be built again from the log.

queue_unit.py     the 20 bytes of a queue for one message; the rule where a queue ends
consume_queue.py  the units of one queue, its min and max offset
queue_table.py    all queues, by topic and queue id
light_queues.py   one record in several queues (%LMQ%)
key_hash.py       hashes of index keys, fast
index_file.py     one file of the index
key_index.py      the index: what a message is indexed by, which file it goes to, queries
dispatch.py       records in hand go into queue and index, and are announced
log_dispatch.py   records that are in the log only are read back and dispatched, many at a time
"""
