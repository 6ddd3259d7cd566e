"""pocketmq.client.pulling

after_pull.py          What the answer of a pull does to the position of the pull loop, and how an il
lite_pull_consumer.py  A consumer that asks for its messages
lite_pull_queues.py    The queues a lite pull consumer reads
pull_api.py            One pull from one queue, and the questions about a queue's offsets
pull_consumer.py       A queue read by offset, and its offsets asked for, with the caller deciding ev
"""
