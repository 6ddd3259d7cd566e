"""A store that no process has open: checked, or shown. Nothing is changed on disk.

segments.py      the files of a log or queue, read only
contents.py      which queues a store has, and their newest messages
findings.py      what the checker found: findings and the report
check.py         `check_store`: the whole check in its order
check_log.py     every record
check_queues.py  every unit against its record, every record against its unit
check_index.py   the index, and the marks of the checkpoint
check_tables.py  the tables, and offsets ahead of their queue
"""
