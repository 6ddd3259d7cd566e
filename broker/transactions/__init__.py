"""Holds half messages until their transaction ends, and checks open ones with their producers.

transactions.py          the part of a broker
half_messages.py         half messages, what they become, and the record of those that ended
transaction_check.py     rounds of the check (39)
op_queue.py              which half messages have ended
transaction_handlers.py  37 ends a transaction; 323 resumes the check
"""
