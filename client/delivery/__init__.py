"""Calls the listener with messages, and acts on the status that it returns.

listeners.py            calls a user's listener: async or plain, class or function
invocation.py           one call of a listener: its status, its rates, hooks around it
concurrent_delivery.py  delivers messages to a concurrent listener
inline_batch.py         settles the messages of a quick listener together
concurrent_results.py   decides which messages failed, and which offset may be stored
settlement.py           sends failed messages back and moves the offset
ordered_delivery.py     delivers messages to an ordered listener, queue by queue
ordered_results.py      commits, rolls back, or pauses the queue
send_back.py            sends failed messages back to the broker
"""
