"""How a broker stores a message: copies of stored messages, numbers in properties, answers that wait for the disk.

messages.py     reads records; copies of them, messages that wait in another topic first, messages of the broker's own
numbers.py      a property as a number, within bounds
deliveries.py   one rule for messages that are stored again: done, later or lost
log_waiters.py  answers that wait for the disk or for slaves, released together
"""
