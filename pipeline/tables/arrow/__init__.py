"""Stores, topics and journals as Arrow tables: what `pocketmq.pipeline.tables` hands to users.

readers.py          open_store, open_topic, open_journal; the same as datasets
dataset.py          a table as a `pyarrow.dataset.Dataset`
call_options.py     keyword options of a call, and errors in its words
conditions.py       filters and times, and what they rule out before anything is read
store_table.py      messages of stores, as tasks
other_tables.py     runs, statistics, units and offsets of stores
topic_table.py      messages of running brokers, pulled by a thread
remote_store.py     stores behind a URL, as the tables of a folder
journal_table.py    entries of journals
tasks.py            tables of tasks, read by several threads
"""
