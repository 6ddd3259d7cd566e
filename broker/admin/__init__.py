"""Answers the requests of administrators and tools (mqadmin).

topic_handlers.py         17, 18, 21, 202, 215, 300, 305, 351: topics
group_handlers.py         200, 201, 203 to 208, 225, 328, 352, 353: consumer groups and their members
progress_handlers.py      303, 317, 345: how far groups are behind
offset_admin_handlers.py  43, 45, 308, 314, 343: tables of offsets, also for slaves
reset_handlers.py         222: resets of a group's offsets
client_relay_handlers.py  223, 307, 309: requests passed on to consumers
query_handlers.py         12, 33, 321: single messages
runtime_handlers.py       28, 315: figures of a running broker
config_handlers.py        25, 26: settings
cleaning_handlers.py      306, 316, 329: deletes old files and queues
"""
