"""`pocketmq admin`: mqadmin's commands, with its options, columns and texts.

admin_commands.tsv  every command and option, and the function that runs it
command.py          the click commands made from that table
options.py          the options of one call: text, numbers, times
texts.py            how mqadmin writes values
topics.py  groups.py  offsets.py  messages.py  brokers.py  security.py
"""
