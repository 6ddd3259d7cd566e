"""pocketmq.client.values

listener_returns.py  What a listener says about its messages
message.py           The user's view of a message
namespaces.py        The namespace that goes before names (`namespace`, deprecated in favour of `na
validators.py        What a group, a topic and a message must be before anything is sent, refused i
results.py           What a send and a pull return
"""
