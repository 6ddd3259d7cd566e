"""The ledger: what became of every message, and a verdict on each consumer group.

facts.py     what a watcher saw: a delivery, an offset, an ack, a message sent back
reading.py   facts from a request and the answer to it
rpc_reading.py  the same from the calls of gRPC consumers
book.py      all facts, in order, with their bound; the watchers that add to it; what each group subscribes to
stored.py    the messages that the brokers hold
judging.py   a verdict from the facts and the stored messages
verdict.py   a verdict, its findings, and the history of one message
ledger.py    `rocketmq.ledger`
"""
