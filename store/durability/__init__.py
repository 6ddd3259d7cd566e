"""pocketmq.store.durability

checkpoint.py     The checkpoint file
flusher.py        The one thread of the store
foreign_parts.py  Parts of a store that cannot be read, made by newer official brokers or by acc
recovery.py       Bringing log, queues and index to one state after a stop of any kind
store_lock.py     Who may use the directory, and whether the last one left in order
abort_marker.py: the file `abort`
queue_repair.py: the end of each queue after a stop
"""
