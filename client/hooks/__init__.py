"""Hooks: functions of the user that run at each send, delivery or request; and the message trace, built on them.

hooks.py             the kinds of hooks, the contexts they get, and the check that they are plain functions
rpc_hooks.py         hooks on requests
acl.py               signs requests with an access key
trace_records.py     the records as text, in the official format
trace_dispatcher.py  records the sends and deliveries of a client, and sends the records to the trace topic
"""
