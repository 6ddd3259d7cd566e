"""HTTP/2 for gRPC servers: from the bytes of a socket to whole messages of calls, and back. Nothing of RocketMQ here
but the settings of TLS.

    frames.py         frames as bytes: their head, their kinds, and those that we write
    headers.py        the headers of a request, checked; the few header blocks of replies
    header_blocks.py  HEADERS and CONTINUATION frames become lists of headers
    framing.py        messages inside a call: length prefix, gzip, limits
    server_stream.py  one call: its messages in, its replies and trailers out
    outgoing.py       what a connection sends: one write a pass, replies that wait for windows
    limits.py         bounds of each connection and of a port; rates of frames that are cheap to send
    connection.py     one connection: frames to streams, flow control, limits, the end
    port.py           listening sockets, TLS or plain by the first byte, bounds of all connections, the clean stop
    certificates.py   TLS of the port

Frames are our own, header blocks are decoded by the room hpack: the complete library for HTTP/2, h2, takes 170 us of
processor time for a call, more than everything else together. It is the other side in the tests, which compare both.
"""
