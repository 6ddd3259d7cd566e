"""One call of a client: from the path and the bytes of its request to the handler, and from the handler's replies back.

handler.py              what a handler is, returns and raises
watching.py             calls as the watchers of a test see them
journaling.py           calls in the journal
broker_call.py          a call of one of the broker's handlers
inspection.py           health and reflection, for tools
rpc_call.py             a call: from a path and bytes to the handler, and back
"""
