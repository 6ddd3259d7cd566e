"""Answers pulls.

pulling.py              the part of a broker
pull_handlers.py        11 and 361: checks and subscription
pull.py                 one pull: read, answer, or wait and read once more
pull_waiters.py         pulls that wait for the next message
offset_moved_events.py  the record the 4.9 line keeps of each corrected pull
"""
