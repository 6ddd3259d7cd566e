"""Pulls from a queue, and the two consumers without a listener: PullConsumer and LitePullConsumer.

pull_api.py            one pull from one queue
queue_loop.py          the loop of one queue, pulled or popped, and the position after a pull
pull_consumer.py       PullConsumer: reads queues by offset
lite_pull_consumer.py  LitePullConsumer: polls, seeks, commits
lite_pull_queues.py    the queues that a LitePullConsumer reads
"""
