"""Keeps messages over a crash or power loss, and repairs the store at a start. The rules: ../RECOVERY.md.

store_lock.py     one store at a time has the directory open
abort_marker.py   the file that tells a crash from a clean stop
foreign_parts.py  refuses parts of a store that cannot be read here, before anything is changed
checkpoint.py     up to where the other files are known to be on disk
flusher.py        the one thread of the store: forces files to disk, then calls the callbacks that wait for it
damage.py         placeholders for damaged records in the middle of the log
queue_repair.py   finds the end of each queue after a stop, and the units that a power loss took
recovery.py       brings log, queues and index to one state
"""
