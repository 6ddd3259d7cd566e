"""The stored message and the texts around it: layout, properties, ids, names, receipts.

record.py            the bytes of a stored message
properties.py        its properties; the names that have a meaning
flags.py             bits of messages, pulls, topics
topics.py            topic and group names: reserved, legal, built from others
message_queue.py     the address of one queue
batch.py             the body of a batch send
compression.py       compressed bodies
unique_id.py         the id a producer gives a message
offset_id.py         the id a broker gives a message
pop_receipt.py       receipts of POP
recall_handle.py     the text that cancels a delayed message
queue_allocation.py  how the members of a group share queues
java_strings.py      how Java hashes and orders strings
"""
