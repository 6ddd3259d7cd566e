"""Looking at a server without changing it, and waiting for what is to come.

values.py            stored messages, members, locks, held pulls, first positions
embedded_source.py   the embedded server
wire_source.py       a broker of another process, by its protocol
pending.py           delayed, timed, half and popped messages
waits.py             the waits, and how far a group has come, as its members say
"""
