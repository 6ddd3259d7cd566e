"""pocketmq.cli.admin

brokers.py       `pocketmq admin`
command.py       `pocketmq admin COMMAND`
export.py        `pocketmq admin`
given.py         What a user gave to a command of `pocketmq admin`
groups.py        `pocketmq admin`
messages.py      `pocketmq admin`
name_servers.py  `pocketmq admin`
offsets.py       `pocketmq admin`
reading.py       `pocketmq admin`
security.py      `pocketmq admin`
sending.py       `pocketmq admin`
texts.py         How mqadmin writes values
topics.py        `pocketmq admin`
upkeep.py        `pocketmq admin`
    admin_commands.tsv  what mqadmin says of its commands and options
"""
