"""Connections to name servers and brokers, and the routes that name servers reply with.

connection.py      one connection: requests out, replies in, the broker's requests in
pool.py            one connection for each address
tls.py             TLS settings of a connection
route.py           the route of a topic: its brokers and queues
name_servers.py    asks the name servers for routes
address_server.py  asks an HTTP page for the name servers
"""
