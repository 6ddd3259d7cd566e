"""pocketmq.client.instance: what the producers and consumers of one client id share.

client.py             What producers and consumers have in common: settings, hooks, start and shutdown
instance_config.py    From the settings of a client to the instance it belongs to
instance.py           The instance: its life and its periodic work
groups.py             The producers and consumers of the instance
route_book.py         Routes of topics, and the address that a request goes to
broker_addresses.py   Addresses of the brokers of all known routes
heartbeats.py         Heartbeats to every broker
rebalance_service.py  When consumers rebalance
broker_pushes.py      Requests that a broker sends to the client
"""
