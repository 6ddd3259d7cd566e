"""Messages as gRPC clients see them.

names.py            which topic, group and lite topic names are refused
message_types.py    NORMAL, FIFO, DELAY, ...: of a message by its properties, of a topic; the system's property names
received_message.py  a record -> the message that a client receives
"""
