"""pocketmq.client.offsets: how far a group has consumed each of its queues, in memory and in a store.

offset_store.py      What a consumer needs of its offset store
offset_memory.py     Offsets a consumer has reached, between two reports to the store
broker_store.py      The store of a clustering group: its brokers
offset_reports.py    How offsets are sent to the brokers
file_store.py        The store of a broadcasting group: a file of this machine
offset_questions.py  The smallest and largest offset of a queue, and the offset at a time
"""
