"""The values of the client: messages, results, what a listener may return; and the checks of names.

message.py           Message to send, MessageExt as received
results.py           the results of a send and of a pull
listener_returns.py  the statuses that a listener may return
namespaces.py        adds the namespace to topics and groups, and removes it
validators.py        checks a group, a topic and a message before a send
"""
