"""pocketmq.client.push

consumer_report.py  What a push consumer tells of itself (307)
message_stream.py   The listener of a consumer that is iterated over
pop_api.py          Requests of pop consumption
pop_queues.py       The queues a push consumer pops
pop_receipts.py     gives each popped message its receipt
pop_settlement.py   What becomes of popped messages after their listener
pull_loop.py        The pull loop of one assigned queue of a push consumer
push_consumer.py    A consumer that is given its messages
push_queues.py      The queues a push consumer holds
"""
