"""What a stop may cost, and what a start does about it. The rules: ../RECOVERY.md.

store_lock.py     one store at a time has the directory open
abort_marker.py   exists while a store is open; tells a crash from a clean stop
foreign_parts.py  parts of a store that cannot be read here are refused before anything is changed
checkpoint.py     up to where the other files are known to be on disk
flusher.py        the one thread of the store: forces files, calls back those who wait
queue_repair.py   the end of each queue after a stop; what a power loss took from it
recovery.py       log, queues and index brought to one state
"""
