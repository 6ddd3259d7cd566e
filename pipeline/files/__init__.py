"""Files on disk, read without a broker: commit logs, consume queues, offset tables and journals. No Spark.

mapped_file.py      a file mapped into memory, and where its written bytes end
remote_copies.py    windows of files behind a URL, copied to files that can be mapped
log_files.py        the files of a commit log, and how they are split into tasks
consume_queues.py   the entries of consume queues, and the consumer offset table
scan.py             records of a split or queue, checked, with the position of every damage
journal_rows.py     journal files to rows
"""
