"""pocketmq.broker.name_server

kv_config.py                    The name server's key-value settings
name_server.py                  The name server's state and its clockwork
name_server_config_handlers.py  The name server's own settings over the wire
name_server_handlers.py         What the name server answers
route_table.py                  The name server's memory
topic_routes.py                 What the name server answers about topics
"""
