"""Answers pulls.

pulling.py              the part of a broker
pull_handlers.py        11 and 361: checks, subscription, read, answer
pull_waiters.py         pulls that wait for the next message
offset_moved_events.py  the record the 4.9 line keeps of each corrected pull
"""
