"""pocketmq.broker.admin

cleaning_handlers.py      Cleaning up on an administrator's word
client_relay_handlers.py           What a broker passes on to its clients
config_handlers.py        Settings over the wire
group_handlers.py         Consumer groups for administrators
offset_admin_handlers.py  Offsets for administrators and slaves
progress_handlers.py      How far groups are behind, for administrators
query_handlers.py         Looking up single messages
runtime_handlers.py       Figures of a running broker for administrators
topic_handlers.py         Topics for administrators
"""
