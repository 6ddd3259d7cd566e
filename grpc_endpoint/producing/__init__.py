"""What producers ask: where a topic is, storing messages, the ends of transactions, recalls.

producing.py             the part
routes.py                the brokers and queues of a topic, now
route_handlers.py        QueryRoute, and QueryAssignment for consumers
sent_message.py          a sent message -> the properties of its record, or a refusal; its queue
send_handlers.py         SendMessage
transaction_handlers.py  EndTransaction, RecallMessage
"""
