"""The Python client while its broker is killed and restarted: the same test on ours, official 4.9.7 and 5.5.0.

No acknowledged message is lost, each message is consumed at least once, ordered queues stay in order. The official
brokers flush each message to disk before they answer: otherwise a killed one may lose the last ones it acknowledged.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.clients.test_python_client import findings, start
from conformance.conftest import CHOSEN_SIDES
from conformance.servers.processes import Running
from conformance.servers.server import Server

PROGRAM = Path(__file__).parent / "python_traffic_program.py"
KILLS = 2


def sent(program: Running) -> int:
    return max((int(text) for text in re.findall(r"^SENT (\d+)$", program.output, re.MULTILINE)), default=0)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("side", CHOSEN_SIDES)
def test_killed_brokers_lose_nothing_acknowledged(
    fresh_server: Callable[..., Server], names: Callable[[str], str], side: str
) -> None:
    server = fresh_server(side, broker_conf={"flushDiskType": "SYNC_FLUSH"})
    prefix = names("killed")
    topic = f"{prefix}_t"
    findings(start(server, "send", f"{prefix}0", topic, "4"))
    log = server.home / "run" / "python-traffic.out"
    argv = [sys.executable, str(PROGRAM), topic, prefix]
    with Running(server.namespace, argv, log, name="python traffic") as program:
        for _ in range(KILLS):
            program.wait_for(rf"^SENT {sent(program) // 20 * 20 + 60}$", 120)
            server.kill()
            server.start()
        program.wait_for(rf"^SENT {sent(program) // 20 * 20 + 60}$", 120)
        program.say("stop")
        found = findings(program, 180)
    assert found["acknowledged"] >= 60 * (KILLS + 1)
    assert (found["passed_over"], found["swapped"]) == (0, 0)
