"""Keeps messages until they are due: delay levels, and the timer of the 5.x line.

delayed.py         the part of a broker
delay_levels.py    delay levels: moves messages into the schedule topic, and out of it when they are due
timer_sends.py     moves messages with a time into the timer topic
timer.py           the timer: enqueues the messages of the timer topic, wakes at the next slot
timer_delivery.py  delivers the messages of one slot
timer_handlers.py  370 recalls a message; 60 and 61 answer the state of the timer
"""
