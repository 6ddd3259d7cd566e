"""Each client plays a scenario: nothing is lost, and the brokers and the client agree on what it got.

docs/behaviour.md has a chapter for every scenario; `make behaviour` writes it.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pocketmq.testing.behave.run import read_report
from pocketmq.testing.behave.scenario import built_in, read_scenario

from conformance.behaviour.clients import CLIENTS
from conformance.behaviour.document import DOCUMENT
from conformance.clients.foreign import RUST_SECONDS
from conformance.daily import DAILY
from conformance.official.jars import PeersUnavailable
from conformance.on_demand import ON_DEMAND

SCENARIOS = {
    "busy": """
about: A quiet start, then a busy broker.
role: both
steps:
  - until: {sent: 20, seconds: 60}
  - until: {delivered: 20, seconds: 60}
  - fault: {effect: refuse, code: GET_CONSUMER_LIST_BY_GROUP, response: SYSTEM_BUSY, times: null}
  - until: {sent: 20, seconds: 60}
""",
    "trouble": """
about: One of two brokers is killed, and then the other one is hidden.
role: both
brokers: 2
steps:
  - until: {sent: 40, seconds: 60}
  - until: {delivered: 40, seconds: 60}
  - kill: b1
  - until: {sent: 40, seconds: 60}
  - start: b1
  - until: {sent: 40, seconds: 60}
  - hide: b0
  - until: {sent: 40, seconds: 60}
  - show: b0
  - until: {sent: 40, seconds: 60}
  - until: {delivered: 40, seconds: 60}
""",
    "fails": """
about: The program fails every tenth message once.
role: consumer
steps:
  - until: {joined: 1, seconds: 60}
  - feed: {messages: 20, seconds: 2, fails: 1}
  - until: {delivered: all, seconds: 60}
  - until: {redelivered: 2, seconds: 60}
""",
    "ordered": """
about: Messages arrive in order.
role: ordered
steps:
  - until: {joined: 1, seconds: 60}
  - feed: {messages: 200, seconds: 2}
  - until: {delivered: all, seconds: 60}
""",
}
BUILT_FOR_MINUTES = {"Rust 1.0.0"}
CASES = [
    *(pytest.param(name, "busy", marks=ON_DEMAND if name in BUILT_FOR_MINUTES else ()) for name in CLIENTS),
    *((name, "trouble") for name in ("Java 4.9.8", "Java 5.5.0")),
    *((name, "fails") for name in ("C++ 0.4.4", "JavaScript ali-ons 3")),
    ("Go 2.1.2", "ordered"),
]


@pytest.mark.parametrize(("client", "scenario"), CASES)
@pytest.mark.timeout(RUST_SECONDS)
def test_a_client_of_every_language_is_judged(client: str, scenario: str, tmp_path: Path) -> None:
    try:
        command = CLIENTS[client]()
    except PeersUnavailable as why:
        pytest.skip(str(why))
    file, report = tmp_path / "played.yaml", tmp_path / "report.json"
    file.write_text(SCENARIOS[scenario])
    words = ("behave", str(file), "--save", str(report), "--output", str(tmp_path), "--", *command)
    ran = subprocess.run(
        [sys.executable, "-m", "pocketmq.cli", *words], capture_output=True, text=True, check=False
    )
    printed = (tmp_path / "played-1.txt").read_text(errors="replace")
    assert ran.returncode == 0, ran.stdout + ran.stderr + printed
    found = read_report(report).scenarios["played"].measures
    assert (found.lost, found.out_of_order, found.killed, found.not_reached) == (0, 0, 0, [])
    assert found.sent >= (40 if scenario in ("busy", "trouble") else 0)
    assert abs(found.said.get("SENT", 0) - found.sent) <= 2, "the last one, and one whose broker was killed"
    assert found.delivered >= 20
    assert found.said["GOT"] >= found.delivered - 64, "the last ones may reach it while it ends"


@DAILY
def test_the_document_has_every_scenario_and_client() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    chapters = re.findall(r"^## ([a-z-]+)$\n\n(.*)$", text, re.MULTILINE)
    assert chapters == [(name, read_scenario(name).about) for name in built_in()]
    assert set(re.findall(r"^\| ([A-Z][^|]*?) \|", text, re.MULTILINE)) >= set(CLIENTS)
