"""PushConsumer: pulls or pops messages and calls a listener with them.

push_consumer.py      PushConsumer: start, shutdown, and the methods for users
push_queues.py        the queues that a consumer holds, the pulls from each, and how it is released
pop_queues.py         the queues that a consumer pops, and what becomes of popped messages
pop_api.py            the requests of POP: pop, acknowledge, change the invisible time; receipts
running_info.py       the answer to tools that ask for the consumer's inner state
message_stream.py     the listener behind `async for` and `fetch`
"""
