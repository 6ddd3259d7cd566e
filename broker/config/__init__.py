"""pocketmq.broker.config

broker_config.py   Settings of the broker and of the name server
keys.py            The keys of broker.conf and namesrv.conf
loading.py         From broker.conf, namesrv.conf and `key=value` words to typed settings, and wh
table_settings.py  The part of the broker's settings that the tables of topics and groups look at
    official_keys.tsv  every key of the official brokers
"""
