"""Official RocketMQ programs run against PocketMQ and against each other; see README.md.

Rooms in reading order: `servers/` (networks, programs and servers that always end, raw questions to them), `official/`
(jars, servers and programs of Apache RocketMQ), `requests/` (rows of requests and answers), `first_position/`,
`access/`, `waiting/` (delayed, timed, popped and half messages), `clients/` (Python, Java and Spark),
`admin/` (mqadmin), `cluster/` (name servers, master and slave), `stores/` (one store in turns), `examples/` (the
official example programs), `behaviour/` (clients in trouble), `e2e/` (the official suite for gRPC clients, by hand),
`recorders/` (what writes `tests/golden`), `java/` (programs that tests compile). `conftest` has the fixtures,
`on_demand` lists what runs at night only.

Except for what is in `clients/`, `admin/` and `behaviour/`, nothing here imports PocketMQ: our server is a process like
the official one.
"""

from pathlib import Path

JAVA = Path(__file__).parent / "java"
