"""Connections: reads requests from sockets, calls their handlers, and sends our own requests to peers.

dispatch.py           request code -> handler; what a handler receives (Call, Peer) and returns (Answer)
role.py               what a connection uses of its server, and the limits of each connection
watch.py              what sees, and may change, the requests and replies of a server
calls.py              our own requests to a peer, matched with their replies
connection.py         one connection: reads and handles requests, writes replies, back-pressure
new_connection.py     a connection whose first bytes have not yet said what it speaks
tls_detector.py       the first byte of a connection decides between TLS and plain frames
tls_stream.py         a connection inside TLS
tls.py                certificates, and when to use TLS
listening.py          listening sockets: every address of a host, free ports
descriptors.py        file descriptors that are kept back for the store
server.py             accepts, opens and closes connections
journal.py            the files of `--journal`, a feature of its own
journal_watcher.py    fills these files
"""
