"""pocketmq.client.settings: every setting of the clients, with its default and its check.

client_settings.py    What all clients share
producer_settings.py  Settings of a producer
consumer_settings.py  Settings of push consumers and lite pull consumers
keywords.py           The settings as typed keyword arguments
checks.py             How settings are checked
java_setters.py       Java setters without a counterpart here
allocation.py         Strategies that share queues among the members of a group
timestamps.py         The text of `consume_timestamp`
local_address.py      The address of this machine
"""
