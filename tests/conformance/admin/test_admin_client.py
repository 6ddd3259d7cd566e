"""AdminClient: one program finds the same on ours, official 4.9.7 and official 5.5.0.

`python_admin_program.py` runs inside the server's namespace. `test_admin_commands.py` compares what `pocketmq admin`
prints with mqadmin.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from conformance.servers.processes import Running
from conformance.servers.server import Server

PROGRAM = Path(__file__).with_name("python_admin_program.py")


def test_the_same_is_found_everywhere(side: Server, names: Callable[[str], str]) -> None:
    log = side.home / "run" / "python-admin.out"
    program = Running(side.namespace, [sys.executable, str(PROGRAM), names("py")], log, name="admin program")
    found = json.loads(program.wait_for(r"^FOUND (.*)\n", 150)[1])
    assert program.finish() == 0
    assert found["topics and groups"] == {
        "topic": [2, 2, 6],
        "group": 3,
        "listed": True,
        "clusters": ["DefaultCluster"],
        "order": "broker-a:2",
        "absent": ["RouteNotFound", "RequestRefused 22", "RouteNotFound", "InvalidArgument"],
    }
    assert found["messages"] == {
        "bodies": ["order 2"] * 3,
        "read": [4],
        "entries": 2,
        "kept_id": True,
        "absent": ["MessageNotFound", 0],
    }
    progress = found["progress"]
    assert progress.pop("directly")[0] == "CR_SUCCESS"
    ends = progress["cloned"]
    assert sum(ends) == 6
    assert progress == {
        "member": True,
        "queues": [0, 1],
        "track": "CONSUMED",
        "groups": True,
        "cloned": ends,
        "skipped": ends,
        "rolled": ends,
    }
    (prefix_values,) = [found["brokers"].pop("values")]
    assert prefix_values == {"key": "value"}
    assert found["brokers"] == {
        "changed": "9999",
        "name": "broker-a",
        "figures": True,
        "namesrv": True,
        "removed": "RequestRefused 22",
    }
    assert found["gone"]
