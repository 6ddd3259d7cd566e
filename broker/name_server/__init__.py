"""The name server: which brokers live, which topics they have, and what clients and brokers ask about them.

name_server.py      the name server as a whole: its tables, the scan for silent brokers, notices to brokers
route_table.py      registered brokers and their topics (RouteInfoManager)
topic_routes.py     the answers made from that table: routes and lists of topics
kv_config.py        key-value settings, kept in a file
handlers.py         one function for each request but two
config_handlers.py  those two: the name server's own settings over the wire (318, 319)
"""
