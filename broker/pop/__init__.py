"""Answers pops: delivers messages that stay hidden until they are acknowledged or their invisible time is over.

popping.py              the part of a broker
pop_handlers.py         200050: checks, retry topic and topic, answer
pop_reading.py          reads queues for one pop, and stores checkpoints
pop_waiters.py          pops and notifications that wait for a message
ack_handlers.py         200051, 200151: acknowledge messages; 200053: change their invisible time
revive_log.py           stores checkpoints and acks
revive.py               copies messages without an ack to the retry topic
ordered_pops.py         the messages in flight of each queue that is popped orderly
peek_handlers.py        200052, 200054, 200055: peek, notification, polling info
assignment_handlers.py  400 to 402: the broker assigns the queues
"""
