"""pocketmq.client.rebalancing: which queues a consumer holds, where it begins in each, and what they contain.

subscriptions.py       The topics a consumer reads
plan.py                One rebalance round as decisions
rebalancer.py          The round itself
broker_assignments.py  Queues that the broker assigns (5.x)
queue_table.py         The process queues a consumer holds
held_queues.py         What push and lite pull consumers have in common
first_position.py      The rule that decides where a consumer starts
queue_locks.py         Locks of ordered consumers at the brokers
process_queue.py       Pulled messages of one queue that are not finished
flow_control.py        Whether a queue may be pulled now
"""
