"""Keeps messages until they are due: delay levels, and the timer of the 5.x line.

delayed.py         the part of a broker
delayed_sends.py   moves messages into the schedule topic or the timer topic when they are stored
delay_levels.py    delivers messages with a delay level when they are due
timer.py           the timer: enqueues the messages of the timer topic, wakes at the next slot
timer_delivery.py  delivers the messages of one slot
timer_handlers.py  60 and 61 answer the state of the timer
"""
