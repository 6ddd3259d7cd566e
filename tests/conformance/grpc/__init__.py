"""The gRPC endpoint beside the official proxy in LOCAL mode: the same requests, the same answers.

rows.py                requests that are refused, and settings
refusals.py            those, and the lives of clients
consumption.py         sends, and what consumers and servers do with the messages: a scenario each
access.py              signatures and rights
talk.py                one conversation: requests in, lines out
side.py                the two sides of a conversation
conversations.py       all of them; `recorded/` has what the official proxy answered
test_conversations.py  ours, every day; the official proxy, at night
test_document.py       the programs of docs/grpc.md
"""
