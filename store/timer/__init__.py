"""Timed messages that wait, on disk.

timer_log.py         one unit for each noted message
timer_wheel.py       where the chain of each moment ends in the timer log
timer_checkpoint.py  config/timercheck: how far the timer has come
timer_store.py       note a message, read what is due, save
timer_recovery.py    log, wheel and checkpoint brought to one state at a start
"""
