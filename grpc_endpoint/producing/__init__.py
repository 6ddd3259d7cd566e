"""What producers ask: where a topic is, storing messages, the ends of transactions, recalls.

producing.py             the part
routes.py                the brokers and queues of a topic, now
route_handlers.py        QueryRoute
sent_message.py          a sent message -> the properties of its record, or a refusal
queue_choice.py          the queue of a message
send_handlers.py         SendMessage
transaction_handlers.py  EndTransaction
recall_handlers.py       RecallMessage
"""
