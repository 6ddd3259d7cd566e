"""Holds half messages until their transaction ends, and checks open ones with their producers.

transactions.py          the part of a broker
half_messages.py         stores half messages, and records which have ended
ends.py                  commits half messages and rolls them back
transaction_check.py     asks producers about open half messages (39)
transaction_handlers.py  37 ends a transaction; 323 resumes the check
"""
