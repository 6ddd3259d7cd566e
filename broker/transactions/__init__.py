"""Holds half messages until their transaction ends, and checks open ones with their producers.

transactions.py          the part of a broker
half_messages.py         stores, commits and rolls back half messages, and records which have ended
transaction_check.py     asks producers about open half messages (39)
transaction_handlers.py  37 ends a transaction; 323 resumes the check
"""
