"""Keeps how far a group has consumed each of its queues, in memory and in a store.

offset_store.py      the interface of an offset store
offset_memory.py     offsets a consumer has reached, between two commits to the store
broker_store.py      the store of a clustering group: its brokers
offset_reports.py    commits offsets to the brokers
file_store.py        the store of a broadcasting group: a file on this machine
offset_questions.py  asks for the min and max offset of a queue, and the offset at a time
"""
