"""The name server: keeps the registered brokers and their topics, and answers routes.

name_server.py  the name server as a whole: its tables, the scan for brokers without heartbeat, notices
route_table.py  registered brokers and their topics (RouteInfoManager)
topic_routes.py answers made from that table: routes and lists of topics
kv_config.py    key-value settings, kept in a file
handlers.py     the functions that answer requests
"""
