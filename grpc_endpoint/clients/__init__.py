"""The clients of the endpoint: who they are, what they may do, what they announced, and what the broker asks them.

clients.py             the part: the known clients and their settings, the checks that every request passes
authorizer.py          users, signatures and rights, before a request's own checks
peer.py                one client as the broker sees it; 307, 309 and 39 as commands of its telemetry stream
merged_settings.py     a client's settings, completed by the server
registration.py        clients in and out of the broker's consumer and producer groups
telemetry.py           Telemetry, Heartbeat, NotifyClientTermination: what a client says about itself
open_transactions.py   the half messages that clients may end now
"""
