"""How a broker stores a message: its property text, copies of stored messages, numbers in properties.

stored_properties.py  property text in the order in which the official broker stores it
rerouting.py          a message that is stored in a topic of the broker's own first
numbers.py            a property as a number, within bounds
records.py            the record at a log position, or nothing
log_waiters.py        answers that wait for the disk or for slaves, released together
deliveries.py         one rule for messages that are stored again: done, later or lost; the work of one iteration
message_copies.py     a stored record as the new message that replaces it; messages of the broker's own
"""
