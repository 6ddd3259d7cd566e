"""Commands that look at a running cluster and change nothing.

explain.py    where a group starts reading a topic, and which rule decides: `pocketmq explain`
topics.py     topics with their queues and messages: `pocketmq topics`
groups.py     consumer groups with members and lag: `pocketmq groups`
lag.py        how far groups have to go, queue by queue: `pocketmq lag`
clients.py    who is connected: `pocketmq clients`
cluster_names.py   names in a cluster, for lists and for TAB; many questions at once, but not too many
"""
