"""Files on disk, read without a broker: commit logs, consume queues, offset tables and journals. No Spark.

locations.py        a store's place: a folder or a URL, and how that is shown
store_topics.py     the topics of a store
remote_files.py     files behind a URL, read into memory
log_files.py        the files of a commit log, how they are split into tasks, and their bytes
consume_queues.py   the entries of consume queues, and the consumer offset table
scan.py             records of a split or queue, checked, with the position of every damage
runs.py             records as runs of consecutive offsets of a queue
run_statuses.py     what a run's status says
queue_check.py      whether records and consume queues match
queue_index.py      the records of some topics by the consume queues, and what these leave out
aggregates.py       runs and statistics of a split: a handful of rows instead of all records
journal_rows.py     journal files to rows
"""
