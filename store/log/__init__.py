"""pocketmq.store.log

commit_log.py      The commit log
record_scan.py     Reading on through a log file after a crash
replicated_log.py  The log as it is copied from one broker to another
record_packing.py: messages packed as records
"""
