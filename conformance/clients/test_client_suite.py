"""The tests of the Python client (`tests/client`) on the official servers: those that ask a server and look into none.

On ours they run every day, each on a server of its own; here one after the other on one server, in its namespace.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.servers.namespaces import clean_environment
from conformance.servers.processes import Running
from conformance.servers.server import NAMESRV_ADDR, Server

ROOT = Path(__file__).parents[2]
TESTS_AT_LEAST = 140
LIMIT_SECONDS = 600

NOT_IN_4_9 = ()
"""What the 4.9 line does not have."""


@pytest.mark.timeout(LIMIT_SECONDS + 60)
@pytest.mark.parametrize("side", ["official-4.9", "official-5.5"])
def test_client_suite_passes(fresh_server: Callable[..., Server], side: str) -> None:
    server = fresh_server(side)
    words = ["-q", "-p", "no:cacheprovider", "--color=no", "-m", "not soak", "tests/client"]
    if side == "official-4.9":
        words += ["-k", " and ".join(f"not {name}" for name in NOT_IN_4_9)]
    suite = Running(
        server.namespace,
        [sys.executable, "-m", "pytest", *words],
        server.home / "run" / "client-suite.out",
        name="tests/client",
        env=clean_environment(POCKETMQ_TEST_NAMESRV=NAMESRV_ADDR, CI="true"),
        cwd=ROOT,
    )
    code = suite.finish(LIMIT_SECONDS)
    assert code == 0, suite.output[-6000:]
    passed = re.search(r"(\d+) passed", suite.output)
    assert passed is not None
    assert int(passed[1]) >= TESTS_AT_LEAST
