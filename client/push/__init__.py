"""PushConsumer: pulls or pops messages and calls a listener with them.

push_consumer.py      PushConsumer: start, shutdown, and the methods for users
push_queues.py        the queues that a consumer holds, and how each is released
pull_loop.py          pulls from one queue, again and again
pop_queues.py         the queues that a consumer pops, with a loop for each
pop_api.py            the requests of POP: pop, acknowledge, change the invisible time
pop_receipts.py       gives each popped message its receipt
pop_settlement.py     acknowledges popped messages, or delays them
running_info.py       the answer to tools that ask for the consumer's inner state
message_stream.py     the listener behind `async for` and `fetch`
"""
