"""What a user gives to a client and gets from it, and the checks of names.

message.py           Message to send, MessageExt as received
results.py           what a send and a pull return
listener_returns.py  what a listener says about its messages
namespaces.py        the namespace before topics and groups
validators.py        what a group, a topic and a message must be
"""
