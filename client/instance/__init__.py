"""pocketmq.client.instance

broker_addresses.py  Where the brokers of all known routes are
broker_pushes.py     What a broker asks of a client, on the connection the client opened
client.py            What producers and consumers have in common
groups.py            What a client instance and its groups ask of each other
heartbeats.py        Heartbeats of one client instance
instance.py          What the producers and consumers of one client id share
instance_config.py   From a facade's settings to the instance it belongs to
"""
