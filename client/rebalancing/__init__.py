"""Decides which queues a consumer holds and where it begins in each, and keeps their unfinished messages.

subscriptions.py       the topics that a consumer reads
held_queues.py         the queues of a consumer and its rounds: base class for push and lite pull consumers
group_member.py        a consumer that shares queues with its group: base class for the same two
consumer_context.py    what the parts of a consumer have in common; its rates
first_position.py      the rule that decides where a consumer starts
queue_locks.py         locks of ordered consumers at the brokers
process_queue.py       messages of one queue, pulled or popped, that are not finished; the table of the queues held
flow_control.py        whether a queue may be pulled now, the user's pause
"""
