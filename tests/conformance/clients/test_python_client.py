"""The Python client: the same test on ours, official 4.9.7 and official 5.5.0; and beside Java members in one group.

Sending, order and lite pull are in `test_client_suite.py`. `python_client_program.py` runs inside the server's
namespace.
"""

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance import JAVA
from conformance.conftest import SIDES
from conformance.official.programs import compile_java
from conformance.servers.processes import Running
from conformance.servers.server import Server

HERE = Path(__file__).parent
PROGRAM = HERE / "python_client_program.py"
MEMBER = (JAVA / "GroupMember.java").read_text(encoding="utf-8")

SETTLE_S = 3.0
"""Members take over queues within a second or two; nothing tells from outside when they have."""


def start(server: Server, scenario: str, *arguments: str) -> Running:
    log = server.home / "run" / f"python-client-{scenario}-{arguments[0]}.out"
    return Running(server.namespace, [sys.executable, str(PROGRAM), scenario, *arguments], log, name=scenario)


def findings(program: Running, timeout: float = 120.0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(program.wait_for(r"^FOUND (.*)\n", timeout)[1])
    assert program.finish() == 0
    return found


def test_refused_messages_are_delivered_again_and_then_kept_as_dead_letters(
    side: Server, names: Callable[[str], str]
) -> None:
    found = findings(start(side, "retry", names("py")))
    assert found == {"tries": [[True, 0], [True, 1]], "dead": ["never"], "retry": 1}


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


def test_requests_get_their_replies(side: Server, names: Callable[[str], str]) -> None:
    found = findings(start(side, "request_reply", names("py")))
    assert found == {"reply": "answer", "timed_out": True}


@pytest.mark.parametrize("version", ["4.9", "5.5"])
@pytest.mark.parametrize("mode", ["concurrent", "orderly"])
def test_a_java_and_a_python_member_share_and_hand_over(
    chosen_side: Server, names: Callable[[str], str], version: str, mode: str
) -> None:
    """Java alone, then both, then Python alone: no message is skipped, and those sent last arrive once.

    A concurrent member that joins reads offsets the other has not reported yet: between official members, too, what
    was consumed since the last report comes twice then. Locks keep that from ordered ones.
    """
    prefix = names("mixed")
    topic, group = f"{prefix}_t", f"{prefix}_g"
    sent = findings(start(chosen_side, "send", f"{prefix}0", topic, "40"))["sent"]
    java = chosen_side.programs.start_java(compile_java(version, MEMBER), topic, group, mode)
    java.wait_for(r"^SEEN ", 60, count=41)
    python = start(chosen_side, "member", prefix, topic, group, mode)
    python.wait_for(r"^JOINED$")
    sent += findings(start(chosen_side, "send", f"{prefix}1", topic, "40"))["sent"]
    time.sleep(SETTLE_S)
    java.say("leave")
    assert java.finish(60) == 0
    last = findings(start(chosen_side, "send", f"{prefix}2", topic, "40"))["sent"]
    time.sleep(SETTLE_S)
    python.say("leave")
    found = findings(python)
    by_java = [(int(a), int(b)) for a, b in re.findall(r"^SEEN (\d+) (\d+)$", java.output, re.MULTILINE)]
    by_python = [tuple(one) for one in found["seen"]]
    assert {tuple(one) for one in sent + last} <= {*by_java, *by_python}
    if mode == "orderly":
        assert len(by_java) + len(by_python) - len({*by_java, *by_python}) <= 4
    assert [by_python.count(tuple(one)) for one in last] == [1] * 40
    assert not {tuple(one) for one in last} & set(by_java)
    assert sorted(found["queues"]) == [0, 1, 2, 3]
    shared = [tuple(one) for one in sent[40:]]
    assert len({one[0] for one in shared if one in by_java}) == 2
    assert {one[0] for one in shared if one in by_python}
