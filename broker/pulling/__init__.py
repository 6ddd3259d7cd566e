"""Answers pulls.

pulling.py        the part of a broker
pull_handlers.py  11 and 361: checks and subscription
pull.py           one pull: reads and answers, or waits and reads once more
pull_waiters.py   pulls that wait for the next message
"""
