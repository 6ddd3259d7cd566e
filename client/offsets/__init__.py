"""Keeps how far a group has consumed each of its queues, in memory and in a store.

offset_store.py   the interface of an offset store; offsets in memory, between two commits to the store
broker_store.py   the store of a clustering group: its brokers
file_store.py     the store of a broadcasting group: a file on this machine
queue_offsets.py  asks for the min and max offset of a queue, and the offset at a time
"""
