"""Decides at which offset a consumer group continues or starts reading a queue, and explains why.

first_position.py     the part of a broker
rules.py              the rules B0 to B7: pure functions
verdict.py            collects the facts, applies the rules, and writes the verdict
from_outside.py       which rule an answer of another broker came from
offset_handlers.py    14 and 15, and the limits of a queue: 29 to 32
skipped_messages.py   which messages a new group skips unseen: a line in the log
broadcast_offsets.py  offsets of broadcasting consumers behind a proxy

What the client does with the answer is in `client/rebalancing/first_position.py`.
"""
