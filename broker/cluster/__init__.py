"""pocketmq.broker.cluster

metadata_sync.py         What a slave takes over from its master beside the log
name_server_link.py      One name server as a broker sees it
registration.py          The broker at its name servers
replication_handlers.py  Questions about replication
replication_master.py    A master's side of replication
replication_slave.py     A slave's side of replication
"""
