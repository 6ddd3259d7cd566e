"""One call of a client: from the path and the bytes of its request to the handler, and from the handler's replies back.

    refusals.py             how a handler refuses: inside the reply, or with a gRPC status
    registry.py             `@rpc`: the handler of each rpc, bound to its part at the start
    watching.py             calls as the watchers of a test see them
    journaling.py           calls in the journal
    broker_call.py          a call of one of the broker's handlers
    inspection_handlers.py  health and reflection, for tools
    rpc_call.py             a call: from a path and bytes to the handler, and back

A handler is a plain function: `def send_message(producing: Producing, request: SendMessageRequest, call: RpcCall)`. It
returns its reply, or `ANSWERS_LATER`. It refuses by raising. The handler of a telemetry stream is called once for each
stream; it returns the `Receiver` of what the client sends.
"""
