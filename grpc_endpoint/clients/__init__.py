"""The clients of the endpoint: who they are, what they may do, what they announced, and what the broker asks them.

clients.py             the part: the known clients and their settings, the checks that every request passes
signatures.py          the user who signed a request
authorizer.py          users, signatures and rights, before a request's own checks
rights.py              what a request needs rights for
peer.py                one client, as the broker's handlers and tables see a connection
client_commands.py     307, 309 and 39 to a client, as commands of its telemetry stream
merged_settings.py     a client's settings, completed by the server
registration.py        clients in and out of the broker's consumer and producer groups
telemetry.py           the stream on which a client sends its settings and gets commands
liveness_handlers.py   Heartbeat and NotifyClientTermination
open_transactions.py   the half messages that clients may end now
"""
