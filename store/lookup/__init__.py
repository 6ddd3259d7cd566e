"""Finds messages: by offset in queues, by key in the index. All of it can be rebuilt from the log.

queue_unit.py        the 20 bytes of a queue for one message; the rule that decides where a queue ends
consume_queue.py     the units of one queue, its min and max offset
queue_table.py       all queues, by topic and queue id
light_queues.py      one record in several queues (%LMQ%)
index_file.py        one file of the index
key_index.py         the index: the keys of a message, the file they are added to, queries
dispatch.py          adds just appended records to queue and index, and announces them
deferred_dispatch.py     what waits for the disk before it is dispatched
log_dispatch.py      reads records back from the log and dispatches them, many at a time
"""
