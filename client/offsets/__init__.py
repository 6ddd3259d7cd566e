"""pocketmq.client.offsets

offset_memory.py   Offsets a consumer has reached, as it holds them in memory between two reports
offset_reports.py  Offsets of a group, told to the brokers
offset_stores.py   How far a group has come in each of its queues
"""
