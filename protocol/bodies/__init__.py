"""Bodies of requests and replies: JSON values, one class for each official class.

body.py          what all bodies share; DataVersion
topic_config.py  settings of a topic
group_config.py  settings of a consumer group
client.py        heartbeats, subscriptions, queue locks, assignments
client_state.py  what brokers and clients report about connected clients
offsets.py       progress of groups, contents of queues, resets
routes.py        routes and lists of the name server
registration.py  what a broker registers at the name server
pop.py           acks in batches
revive.py        checkpoints and acks that a broker stores for POP
broker.py        statistics of a broker
replication.py   master and slaves
security.py      users and rights
"""
