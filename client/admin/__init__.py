"""Looking into a cluster and changing it: `AdminClient`, with methods for what mqadmin does most.

It is one class of about 70 methods, written in the files below; each builds on the calls of the one before it. The
docstring of a method names the official one. Times are epoch milliseconds.

calls.py     one request to a server; the members of a cluster, the brokers of a topic
topics.py    topics: create, change, delete, list, figures, order
groups.py    consumer groups, and the clients that are online
offsets.py   how far groups have consumed, and moving them
brokers.py   brokers: figures and settings
messages.py  single messages: find, read, send again, follow
security.py  users and their rights (5.x)
client.py    AdminClient: all of these together
"""
