"""pocketmq.client.hooks

acl.py               Signing of requests with an access key, as brokers with access control want it
callbacks.py         What a user gives to be called
consume_hooks.py     What hooks are told of each call of a listener
hooks.py             Hooks of a user
rpc_hooks.py         Hooks on requests
trace_dispatcher.py  Sends what a client did to the trace topic, in batches and in the background (
trace_hooks.py       The hooks that make traces of what a client does
trace_records.py     Traces as text
trace_views.py       Message traces as tools show them
"""
