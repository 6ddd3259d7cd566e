"""Answers pops: messages given out one by one, hidden until they are acknowledged or their time is over.

popping.py              the part of a broker
pop_handlers.py         200050: checks, retry topic and topic, answer
pop_reading.py          what one pop reads, notes and answers
pop_waiters.py          pops and notifications that wait for a message
ack_handlers.py         200051, 200151: done; 200053: more time
revive_log.py           checkpoints and acks as they are stored
revive.py               messages whose time is over go to the retry topic
ordered_pops.py         what is out of a queue that is popped in order
queue_alarms.py         when such a queue is free again
peek_handlers.py        200052, 200054, 200055: peek, notification, polling info
assignment_handlers.py  400 to 402: the broker shares out the queues
"""
