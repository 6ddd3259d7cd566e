"""Official gRPC clients, unmodified, at our endpoint: consumers, groups shared with remoting clients, five languages.

consumer_side.py       a server for consumers: short waits, quick retries
test_consumers.py      Java: push and simple consumers, order, filters, dead letters
test_mixed_groups.py   one group with a remoting and a gRPC push consumer
test_other_clients.py  Python, Node, Go, Rust
programs/              what they run: one program for each language, which prints the same lines
"""
