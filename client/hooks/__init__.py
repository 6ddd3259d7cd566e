"""pocketmq.client.hooks: code of the user that runs at each send, delivery or request, and the message trace.

hooks.py             The kinds of hooks, and the contexts they get
callbacks.py         Checks that a user's function is a plain function
consume_hooks.py     Calls the hooks around each call of a listener
rpc_hooks.py         Hooks on requests
acl.py               Signs requests with an access key
trace_hooks.py       Records what a client does
trace_records.py     The records as text, in the official format
trace_dispatcher.py  Sends the records to the trace topic
trace_views.py       The records of one message, as tools show them
"""
