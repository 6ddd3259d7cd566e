"""Keeps messages until they are due: delay levels, and the timer of the 5.x line.

delayed.py         the part of a broker
delay_levels.py    delay levels: into the schedule topic at the send, out of it when the level is over
timer_sends.py     messages with a time: into the timer topic
timer.py           the timer: enqueues what reaches the timer topic, wakes at the next slot
timer_delivery.py  delivers the messages of one slot
timer_handlers.py  370 recalls a message; 60 and 61 report how far the timer is
"""
