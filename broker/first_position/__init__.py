"""pocketmq.broker.first_position

broadcast_offsets.py  Where broadcasting consumers stand, 5.x
offset_handlers.py    Offsets of queues and groups
rules.py              Where does a consumer group start reading a queue, and why? The rule that deci
verdict.py            The verdict on a first position
"""
