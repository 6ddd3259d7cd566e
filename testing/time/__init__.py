"""Virtual time: the clock and the timers of brokers stand still until they are moved.

virtual_timers.py  the timers of one broker
joint_timers.py    the timers of several brokers with one clock
virtual_time.py    moves the clock: advance, advance_to_next, run
"""
