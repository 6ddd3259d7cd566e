"""pocketmq.broker.network

connection.py  One TCP connection, either way
dispatch.py    From a request code to the function that answers it
journal.py     The journal (`--journal DIR`)
server.py      A listening remoting server
tls.py         TLS as the official servers have it
tls_stream.py  A connection's first byte, and the bytes of those that begin with TLS
"""
