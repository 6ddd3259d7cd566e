"""pocketmq.client.push: consumers whose listener is called with messages.

push_consumer.py      The consumer: its start, its shutdown, and what a user calls
consumer_parts.py     Makes its parts
announcement.py       Routes and expressions of new subscriptions
push_queues.py        The queues it holds, and how each is given up
pull_control.py       The user's pause, and how much may wait in one queue
pull_loop.py          One pull after the other from one queue
pop_queues.py         The queues it pops, with a loop for each
pop_process_queue.py  The state of one popped queue
pop_api.py            Requests of pop consumption
pop_receipts.py       Gives each popped message its receipt
pop_settlement.py     Acknowledges popped messages, or puts them off
message_stream.py     The listener of a consumer that is iterated over
consumer_report.py    The running info that mqadmin shows
"""
