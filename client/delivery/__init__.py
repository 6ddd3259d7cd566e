"""Calls the listener with messages, and acts on the status that it returns.

listeners.py            one call of a user's listener: async or plain, class or function; its status
concurrent_delivery.py  delivers messages to a concurrent listener
settlement.py           sends failed messages back and moves the offset
ordered_delivery.py     delivers messages to an ordered listener, queue by queue; commits, rolls back, or pauses
send_back.py            sends failed messages back to the broker
"""
