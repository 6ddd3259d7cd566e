"""The commit log: every message of every topic, in the order of arrival. Everything else can be rebuilt from it.

commit_log.py      append and read records; roll to the next file
record_heads.py    what many messages share in their records
record_scan.py     walk the records of a file, check each and return its fields
replicated_log.py  the log as bytes, copied from a master to a slave
"""
