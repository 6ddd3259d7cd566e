"""pocketmq.client.connections: connections to name servers and brokers, and the routes that name servers answer with.

connection.py      One connection: requests out, replies in, the broker's requests in
pool.py            One connection for each address
tls.py             TLS settings of a connection
route.py           The route of a topic: its brokers and queues
name_servers.py    Asks the name servers for routes
address_server.py  Asks an HTTP page for the name servers
"""
