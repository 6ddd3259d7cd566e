"""pocketmq.store.timer

timer_checkpoint.py  config/timercheck
timer_log.py         The timer log
timer_store.py       Timed messages that wait, on disk
timer_wheel.py       The timer wheel
"""
