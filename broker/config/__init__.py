"""The settings of the broker and of the name server: which keys exist, what they mean, and how they change.

broker_config.py       the settings of the broker and its gRPC port as typed fields; the two questions is_5 and is_slave
name_server_config.py  the name server's settings
official_keys.tsv      every key of the official servers: default, limits, whether we honour it and why not
keys.py                reads that list; from a key and its text to a value and back
addresses.py           host:port and lists of them, the addresses of this machine
loading.py             broker.conf, namesrv.conf and KEY=VALUE words become settings, or one line with the mistake
changes.py             settings changed by request (25 and 318)
"""
