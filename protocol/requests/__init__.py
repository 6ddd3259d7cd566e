"""pocketmq.protocol.requests

admin.py        Looking into a running broker and setting it
controller.py   Requests of the controller, the official process that elects masters
explain.py      Our one request of our own
group.py        Consumer groups as the broker keeps them
lite.py         Lite topics
membership.py   Who is online
name_server.py  Requests answered by the name server
offset.py       Offsets
pop.py          POP
pull.py         Pulling from a queue by offset
query.py        Finding single messages
replication.py  What a slave asks its master beside the log itself, and what tools ask about r
security.py     Users and their rights
send.py         Requests that put messages into the broker
to_client.py    Requests a broker sends to a client, on the connection the client opened
topic.py        Topics as the broker keeps them
transaction.py  The second half of a transactional send, and the broker's question when it doe
"""
