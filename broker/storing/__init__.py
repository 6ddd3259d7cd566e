"""How a broker stores a message: its property text, copies of stored messages, numbers in properties.

stored_properties.py  property text in the order in which the official broker stores it
numbers.py            a property as a number, within bounds
message_copies.py     a stored record as the new message that replaces it
"""
