"""Looking at a server without changing it, and waiting for what is to come.

stored_message.py    a message as the broker stores it
values.py            members, locks, held pulls, first positions
topic_views.py       what a topic holds
group_views.py       what a broker knows of groups and their members
pending.py           delayed, timed and half messages
popped.py            messages that were popped and not acknowledged
filters.py           which messages of a topic a group wants
source.py            where views and waits look
embedded_source.py   the embedded server
wire_source.py       a broker of another process, by its protocol
progress.py          how far a group has come, as its members say
waits.py             the waits, as coroutines
aio.py               the waits for coroutines
"""
