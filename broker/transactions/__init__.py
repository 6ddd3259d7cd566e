"""pocketmq.broker.transactions

half_messages.py         Half messages
transaction_check.py     The question what became of a half message, asked again and again
transaction_handlers.py  How transactions end
"""
