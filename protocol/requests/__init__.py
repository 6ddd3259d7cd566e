"""Every request that is sent, read or handled, declared once: its code, header fields, reply and bodies.

send.py         store messages: send, batch, reply, send back, recall, end of a transaction
send_frames.py  frames of sends from a template, and the quick reading of their replies
pull.py         read messages: pull, query by key, view by position
offset.py       offsets of queues and groups; EXPLAIN_FIRST_POSITION
pop.py          POP, assignments
membership.py   heartbeats, members and connections of groups, queue locks
group.py        settings and progress of consumer groups
topic.py        settings and contents of topics
to_client.py    what a broker asks its clients
name_server.py  routes, broker registration, key-value settings
admin.py        configuration and figures of a broker
security.py     users and rights
replication.py  what slaves ask their master, and what tools ask about it
names.py        the names of all requests, also of those that nothing here uses
"""
