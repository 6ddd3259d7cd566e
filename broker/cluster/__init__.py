"""Speaks to other programs: name servers, slaves, a master.

cluster.py               the part of a broker
registration.py          which topics the name servers know of us, and when they are sent
name_server_link.py      one name server: its connection, and what it was sent
replication_master.py    the HA port: slaves that copy the log, sends that wait for them
replication_slave.py     copies the log of a master
metadata_sync.py         copies what a slave needs beside the log: topics, groups, offsets
replication_handlers.py  906 to 908: addresses and state of replication
"""
