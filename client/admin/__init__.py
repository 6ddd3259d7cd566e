"""Looking into a cluster and changing it: `AdminClient`, with a method for nearly every command of mqadmin.

It is one class of about 110 methods, written in the files below; each builds on the calls of the one before it.

calls.py         one request to a server; the members of a cluster, the brokers of a topic
name_servers.py  settings of name servers, write permission, order configurations
topics.py        topics: create, change, delete, list, figures
groups.py        consumer groups, and the clients that are online
offsets.py       how far groups have consumed, and moving them
brokers.py       brokers: figures, settings, clean-up
messages.py      single messages: find, read, send again, follow
security.py      users and their rights (5.x)
client.py        AdminClient: all of these together
"""
