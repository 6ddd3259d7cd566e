"""pocketmq.broker.membership

client_handlers.py   Clients come, stay and go
clients.py           Client
consumer_groups.py   Who is online in which consumer group, and what the group subscribes to
consumer_notices.py  Tell the members of a consumer group that it changed (40), so that they share
producer_groups.py   Which producers are connected, by group and by client id
queue_locks.py       Which client may consume which queue in order
request_modes.py     Which groups pop which topics instead of pulling them, kept in config/messageR
"""
