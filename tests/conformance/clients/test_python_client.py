"""Transactions of the Python client: the same test on ours, official 4.9.7 and official 5.5.0.

Everything else that any server can show is in `test_client_suite.py`. `python_client_program.py` runs inside the
server's namespace.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.conftest import SIDES
from conformance.servers.processes import Running
from conformance.servers.server import Server

HERE = Path(__file__).parent
PROGRAM = HERE / "python_client_program.py"


def start(server: Server, scenario: str, *arguments: str) -> Running:
    log = server.home / "run" / f"python-client-{scenario}-{arguments[0]}.out"
    return Running(server.namespace, [sys.executable, str(PROGRAM), scenario, *arguments], log, name=scenario)


def findings(program: Running, timeout: float = 120.0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(program.wait_for(r"^FOUND (.*)\n", timeout)[1])
    assert program.finish() == 0
    return found


@pytest.mark.parametrize("chosen", SIDES)
def test_transactions_end_by_their_verdict_or_after_the_brokers_check(
    fresh_server: Callable[..., Server], names: Callable[[str], str], chosen: str
) -> None:
    # 5.5 records ends in batches, up to 3 s late: with a shorter timeout it would check those too.
    conf = {"transactionTimeOut": 6000, "transactionCheckInterval": 1000}
    server = fresh_server(chosen, broker_conf=conf)
    assert findings(start(server, "transactions", names("py"))) == {
        "states": ["COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW", "UNKNOW"],
        "checked": ["fails", "open"],
        "seen": ["commit", "fails", "open"],
    }
