"""`pocketmq admin`: mqadmin's commands, with its options, columns and texts.

admin_commands.tsv  every command and option, and the function that runs it
command.py          the click commands made from that table
given.py            the options of one call: text, numbers, times
texts.py            how mqadmin writes values
topics.py  groups.py  offsets.py  messages.py  brokers.py  name_servers.py  security.py
upkeep.py           clean-up, replication, cold data, timer engine
reading.py          queues, printed from one end to the other
sending.py          round trips of sends
export.py           files: settings of a cluster as JSON
"""
