"""Decides which queues a consumer holds and where it begins in each, and keeps their unfinished messages.

subscriptions.py       the topics that a consumer reads
plan.py                the decisions of one rebalance round
rebalancer.py          carries out a rebalance round
broker_assignments.py  queues that the broker assigns (5.x)
queue_table.py         the process queues that a consumer holds
held_queues.py         the queues of a consumer: the base class for push and lite pull consumers
first_position.py      the rule that decides where a consumer starts
queue_locks.py         locks of ordered consumers at the brokers
process_queue.py       pulled messages of one queue that are not finished
flow_control.py        whether a queue may be pulled now
"""
