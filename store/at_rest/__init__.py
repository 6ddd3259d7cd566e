"""Checks or shows a store that no process has open. Changes nothing on disk.

segments.py      the files of a log or queue, read only
contents.py      which queues a store has, and their newest messages
findings.py      the checker's findings, and the report that holds them
check.py         `check_store`: the whole check in its order; the timer's files
check_log.py     every record
queue_records.py the records of one queue, as the log holds them
check_queues.py  every unit against its record, every record against its unit
check_index.py   the index, and the marks of the checkpoint
check_tables.py  the tables, and offsets ahead of their queue
"""
