"""pocketmq.client.admin

brokers.py   Brokers and name servers
calls.py     What every administrative call stands on
client.py    AdminClient
groups.py    Consumer groups
messages.py  Single messages
offsets.py   Where groups stand, and moving them
security.py  Users and their rights at 5.x brokers
topics.py    Topics
"""
