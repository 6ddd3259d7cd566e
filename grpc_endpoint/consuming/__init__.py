"""What consumers ask. Underneath it is the pop of the broker: receive, then acknowledge each message.

receipt_handle.py       the text by which a client names one delivery of a message
pop_records.py          the records of a pop's answer, each with its handle
delivery.py             what can be done with one delivered message
renewal.py              messages that a push consumer works on stay hidden from others
ack_batch.py            the acks of one pass of a connection, stored together
consuming.py            the part: clients, routes, renewal, acks
dead_letters.py         ForwardMessageToDeadLetterQueue
receiving.py            one receive: pop, wait, send
receive_handlers.py     ReceiveMessage and its checks
ack_handlers.py         AckMessage, ChangeInvisibleDuration
assignment_handlers.py  QueryAssignment
"""
