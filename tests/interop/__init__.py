"""Official RocketMQ programs against PocketMQ, and against themselves as the judge of what a test expects.

Reading order: `namespaces` (each server side has its own network, so fixed ports never clash), `processes`
(programs that are always ended), `servers` (what a test sees of any server), `our_server`, `official/` (jars,
servers and programs of Apache RocketMQ), `remoting` (a few lines of the wire protocol for questions of the
tests themselves), `conftest` (fixtures), `on_demand` (what `make interop-all` adds). Nothing here imports
PocketMQ: our server is a subprocess like the official one.
"""
