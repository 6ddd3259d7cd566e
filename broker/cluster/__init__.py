"""Connects a broker with other programs: name servers, slaves, a master.

cluster.py               the part of a broker
registration.py          registers the broker at its name servers
name_server_link.py      one name server: its connection and the topics it was sent
replication_master.py    the HA port, the log for each slave, and sends that wait for slaves
durable_log.py           calls back when disk and slaves have what was appended
replication_slave.py     copies the log of a master
metadata_sync.py         copies what a slave needs beside the log: topics, groups, offsets
replication_handlers.py  906 to 908: addresses and state of replication
"""
