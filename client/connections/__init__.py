"""pocketmq.client.connections

address_server.py  Name servers by way of an address server
connection.py      One connection of a client to a name server or broker
name_servers.py    Which broker has which queues of a topic, as a name server tells
pool.py            One connection for each address, opened when first needed and opened again whe
tls.py             TLS towards name servers and brokers
"""
