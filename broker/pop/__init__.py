"""pocketmq.broker.pop

ack_handlers.py         Popped messages are done, or want more time
assignment_handlers.py  The broker says who reads which queues
ordered_pops.py         Messages popped in order
peek_handlers.py        Looking without taking
pop_handlers.py         Handing messages out one by one
pop_reading.py          One pop at work
pop_waiters.py          Suspended pops and notifications
popping.py              The parts of pop, put together
revive.py               Messages that were popped and not acknowledged come again, in the retry topic
revive_log.py           Records of pop, as they are stored
"""
