"""pocketmq.client.pulling: pulls from a queue, and the consumers that ask for their messages.

pull_api.py            One pull from one queue
after_pull.py          What the answer of a pull does to the position
pull_consumer.py       A consumer that reads queues by offset
lite_pull_consumer.py  A consumer that polls
lite_pull_queues.py    The queues a lite pull consumer reads
"""
