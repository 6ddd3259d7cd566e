"""pocketmq.protocol.bodies

body.py          Body
broker.py        Bodies about brokers
client.py        Bodies between clients and brokers
client_state.py  Bodies about connected clients
data_version.py  DataVersion
group_config.py  SubscriptionGroupConfig
offsets.py       Bodies about positions in queues
pop.py           Bodies of pop consumption
registration.py  RegisterBrokerBody
revive.py        What stands in the revive topic
routes.py        Bodies of the name server
subscription.py  Build a SubscriptionData from what a user writes
topic_config.py  TopicConfig
"""
