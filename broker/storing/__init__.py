"""pocketmq.broker.storing

message_copies.py     A stored record as the new message that takes its place
stored_properties.py  Property text as the official broker stores it
"""
