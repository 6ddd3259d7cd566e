"""Connections: reads requests from sockets, calls their handlers, and sends our own requests to peers.

dispatch.py        request code -> handler; what a handler receives (Call, Peer) and returns (Answer)
server_context.py  what a connection uses of its server, the limits of each connection, its calls
watch.py           what sees, and may change, the requests and replies of a server
connection.py      one connection: reads and handles requests, writes replies, back-pressure
tls_stream.py      the first byte of a connection decides between TLS and plain frames; a connection inside TLS
tls.py             certificates, and when to use TLS
listening.py       listening sockets, and the file descriptors that are kept back for the store
port.py            an open port: sockets, TLS or not, connections and their end; the gRPC port is one, too
server.py          accepts, opens and closes connections
journal.py         the files of `--journal`, a feature of its own, and what fills them
"""
