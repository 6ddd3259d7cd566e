"""pocketmq.protocol.message

java_strings.py  how Java hashes and orders strings
batch.py          The body of a batch send (code 320)
compression.py    Compressed message bodies
flags.py          Bit fields of the protocol
message_queue.py  MessageQueue
offset_id.py      The broker's message id ("offset message id")
pop_receipt.py    The texts of pop
properties.py     Message properties
recall_handle.py  the text that cancels a delayed message
queue_allocation.py  how the members of a group share queues
record.py         The stored message ("record")
topics.py         Topic and group names
unique_id.py      The client's message id, property UNIQ_KEY
"""
