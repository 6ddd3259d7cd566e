"""Official gRPC clients, unmodified, at our endpoint: consumers, groups shared with remoting clients, five languages.

consumer_side.py            a server for clients: short waits, quick retries
test_consumers.py           Java: push and simple consumers, order, filters, dead letters
test_mixed_groups.py        one group with a remoting and a gRPC push consumer
other_clients.py            Python, Node, Go, Rust: how their programs are started, and what they print
test_other_clients.py       all kinds of messages, both consumers, dead letters; a broker in the client's process
test_guarded_clients.py     TLS, passwords, rights
programs/                   what the clients run: one program for each language, which prints the same lines
"""
