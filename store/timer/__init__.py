"""Keeps on disk which timed messages wait, and for which moment.

timer_log.py         one unit for each enqueued message
timer_wheel.py       where the chain of each moment ends in the timer log; finds the next moment with messages
timer_checkpoint.py  config/timercheck and config/timerprogress: how far the timer has come
timer_store.py       enqueue a message, read the messages that are due, save; one state at a start
"""
