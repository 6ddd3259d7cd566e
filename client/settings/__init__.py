"""Every setting of the clients, with its default and its check.

client_settings.py    settings that all clients share
producer_settings.py  settings of a producer
consumer_settings.py  settings of push consumers and lite pull consumers
keywords.py           the settings as typed keyword arguments; written by docs/settings.py
checks.py             checks the values of settings
java_setters.py       Java setters without a counterpart here
allocation.py         strategies that share queues among the members of a group
timestamps.py         the text form of `consume_timestamp`
"""
