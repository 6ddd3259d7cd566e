"""What consumers ask. Underneath it is the pop of the broker: receive, then acknowledge each message.

receipt_handle.py       the text by which a client names one delivery of a message
delivery.py             what can be done with one delivered message
renewal.py              messages that a push consumer works on stay hidden from others
consuming.py            the part: clients, routes, renewal, acks of a pass
receiving.py            one receive: pop, wait, send
receive_handlers.py     ReceiveMessage and its checks
ack_handlers.py         AckMessage, ChangeInvisibleDuration, ForwardMessageToDeadLetterQueue
"""
