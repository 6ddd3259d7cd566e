"""pocketmq.broker.delayed

delayed_messages.py  Messages that wait
timer_delivery.py    Timed messages on their way out of the timer topic, once their moment is over
timer_handlers.py    What is asked about timed messages
timer_messages.py    Timed messages that wait
timer_sends.py       Messages for an exact time (5.x) as they are stored
"""
