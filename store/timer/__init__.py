"""Keeps on disk which timed messages wait, and for which moment.

timer_log.py         one unit for each enqueued message
timer_wheel.py       where the chain of each moment ends in the timer log
used_moments.py     finds the next moment with messages
timer_checkpoint.py  config/timercheck: how far the timer has come
timer_progress.py    config/timerprogress: the same since the checkpoint, for a start after a kill
timer_recovery.py    brings timer log and wheel to one state at a start
timer_store.py       enqueue a message, read the messages that are due, save
"""
