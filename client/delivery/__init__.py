"""Calls the listener with messages, and acts on the status that it returns.

delivery_parts.py       the parts that concurrent and ordered delivery share
listeners.py            calls a user's listener: async or plain, class or function
concurrent_delivery.py  delivers messages to a concurrent listener
quick_run.py            settles the messages of a quick listener together
concurrent_results.py   decides which messages failed, and which offset may be stored
settlement.py           sends failed messages back and moves the offset
ordered_delivery.py     delivers messages to an ordered listener, queue by queue
ordered_results.py      commits, rolls back, or pauses the queue
send_back.py            sends failed messages back to the broker
retry_message.py        the copy of a failed message for the retry topic
statistics.py           rates of a consumer, by topic
"""
