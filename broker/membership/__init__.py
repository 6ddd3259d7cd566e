"""Keeps the connected clients: the members of consumer and producer groups, and the queues that they lock.

membership.py        the part of a broker
consumer_groups.py   one client on one connection; the members and subscriptions of each consumer group
consumer_notices.py  40: notifies members that their group has changed
producer_groups.py   the connected producers, by group and by client id
queue_locks.py       which client may consume which queue orderly
request_modes.py     which groups pop a topic instead of pulling it
hints.py             why a group may not get what it expects, once in the log
client_handlers.py   34 heartbeat, 35, 38, the locks 41 and 42, 46
"""
