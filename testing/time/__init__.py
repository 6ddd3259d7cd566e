"""Virtual time: the clock and the timers of brokers stand still until they are moved.

virtual_timers.py  the timers of one broker
virtual_time.py    moves the clock of one or several brokers: advance, advance_to_next, run
clock.py           ServerClock: the server's time as a test has it, virtual or real
"""
