"""The client instance: connections, routes and heartbeats that all producers and consumers of one client id share.

client.py             the base of producers and consumers: settings, hooks, start and shutdown
instance_config.py    finds the instance that a client's settings belong to
instance.py           the instance: its start and stop, and its periodic work
groups.py             the producers and consumers of the instance
route_book.py         routes of topics, and the broker address for a request
heartbeats.py         heartbeats to every broker
rebalance_service.py  starts the rebalance rounds of consumers
broker_pushes.py      handles requests that a broker sends to the client
"""
