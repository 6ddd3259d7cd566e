"""Connections: from bytes on a socket to a call of the function that answers, and our own requests to a peer.

dispatch.py              request code -> handler; what a handler receives (Call, Peer) and returns (Answer)
role.py                  what a connection uses of its server, and the limits of each connection
calls.py                 our own requests to a peer, matched with their replies
connection.py            one connection: passes, replies, back-pressure
first_byte.py            the first byte of a connection: TLS or plain frames
tls_stream.py            a connection inside TLS
tls.py                   which certificates, and when TLS is spoken
listening.py             listening sockets: every address of a host, free ports
server.py                accepts connections, keeps them, opens connections to peers, ends them all
journal.py               a feature apart: the files of `--journal`
journaled_connection.py  a connection that writes to them
"""
