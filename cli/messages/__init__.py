"""Messages from a terminal, and to it.

send.py    messages of the command line, of a file or of a pipe: `pocketmq send`
tail.py    the messages of a topic, as they arrive or until the end: `pocketmq tail`
input.py   bodies of a file or of standard input
"""
