"""pocketmq.client.delivery: calls the listener with messages, and acts on what it returns.

delivery_parts.py       What concurrent and ordered delivery have in common
listeners.py            Calls a user's listener, whatever its shape
concurrent_delivery.py  Messages to a concurrent listener
concurrent_results.py   Which messages failed, and which offset may be stored
settlement.py           Sends failed messages back and moves the offset
ordered_delivery.py     Messages to an ordered listener, queue by queue
ordered_results.py      Commit, roll back, or pause the queue
send_back.py            Sends failed messages back to the broker
retry_message.py        The copy of a failed message for the retry topic
statistics.py           Rates of a consumer, by topic
"""
