"""pocketmq.broker.network

connection.py  One TCP connection, either way
dispatch.py    From a request code to the function that answers it
journal.py     The journal (`--journal DIR`)
server.py      A listening remoting server
tls.py         TLS as the official servers have it
first_byte.py  A connection's first byte: TLS or plain frames
tls_stream.py  A connection inside TLS
role.py        What a connection uses of its server, and its limits
"""
