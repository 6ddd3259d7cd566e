"""pocketmq.broker.pulling

offset_moved_events.py  The 4.9 line writes down every pull whose offset it had to correct
pull_handlers.py        Reading a queue
pull_waiters.py         Suspended pulls
"""
