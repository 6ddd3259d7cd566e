"""Sending messages: one by one, in batches, in transactions, and as requests that get a reply.

producer.py         what users call: Producer
send_arguments.py   the message and the destination that the keywords of a send describe
transaction.py      TransactionProducer: half messages and their verdicts
request_reply.py    Requester: a request waits for its reply
sender.py           one message: attempts, retries, the broker's reply
async_sends.py      sends whose results are futures
send_retry.py       one attempt until its reply arrives; which failure is retried, what the last one raises
queue_choice.py     round robin, selectors of the user, which brokers are avoided for a while
outgoing.py         makes a message ready to leave, and its request header
batches.py          which lists may be one batch, where a long one is cut, single sends that become one
send_hooks.py       calls the user's hooks around each attempt
"""
