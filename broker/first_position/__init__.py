"""Decides where a consumer group goes on reading a queue, or starts, and explains why.

first_position.py     the part of a broker
rules.py              the rules B0 to B6: pure functions
verdict.py            gathers the facts, applies the rules, and words the verdict
offset_handlers.py    14 and 15, and the limits of a queue: 29 to 32
broadcast_offsets.py  offsets of broadcasting clients behind a proxy
"""
