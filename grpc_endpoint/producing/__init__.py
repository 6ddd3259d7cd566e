"""What producers ask: where a topic is, storing messages, the ends of transactions, recalls.

producing.py             the part
routes.py                the brokers and queues of a topic, now
route_handlers.py        QueryRoute
send_checks.py           what a sent message is refused for
queue_choice.py          the queue of a message
send_results.py          the answers of the broker, as entries of the reply
send_handlers.py         SendMessage
transaction_handlers.py  EndTransaction
recall_handlers.py       RecallMessage
"""
