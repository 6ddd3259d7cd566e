"""Official gRPC clients, unmodified, at our endpoint: five languages, and groups shared with remoting clients.

consumer_side.py            a server for clients: short waits, quick retries
clients.py                  Java, Python, Node, Go, Rust: how their programs are started, and what they print
test_clients.py             all kinds of messages, both consumers, dead letters; a broker in the client's process
test_guarded_clients.py     TLS, passwords, rights
test_mixed_groups.py        one group with a remoting and a gRPC push consumer
programs/                   what the clients run: one program for each language, which prints the same lines
"""
