"""pocketmq.client.rebalancing

broker_assignments.py  Which queues the broker gives this member, and whether to pull or to pop them
first_position.py      Where a consumer starts in a queue nobody told it about
flow_control.py        Whether a queue may be pulled now
held_queues.py         The queues a consumer holds, as far as push and lite pull consumers do it alik
plan.py                One rebalance round as decisions
process_queue.py       The messages of one assigned queue that were pulled and are not finished, and
queue_locks.py         Locks of queues at their brokers
rebalancer.py          The queues of one consumer
"""
