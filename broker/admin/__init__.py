"""Answers the requests of administrators and tools (mqadmin).

topic_handlers.py         17, 18, 21, 202, 215, 300, 305, 306, 316, 329, 351: topics, and the deletion of old data
group_handlers.py         200, 201, 203 to 208, 225, 303, 317, 328, 345, 352, 353: groups, members, progress
offset_admin_handlers.py  43, 45, 222, 308, 314, 343: tables of offsets, also for slaves, and their resets
client_relay_handlers.py  223, 307, 309: requests passed on to consumers
query_handlers.py         12, 33, 321: single messages
runtime_handlers.py       25, 26, 28, 315: settings and figures of a running broker
"""
