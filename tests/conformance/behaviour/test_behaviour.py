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

BUSY = """
about: A quiet start, then a busy broker.
role: both
steps:
  - until: {sent: 20, seconds: 60}
  - until: {delivered: 20, seconds: 60}
  - fault: {effect: refuse, code: GET_CONSUMER_LIST_BY_GROUP, response: SYSTEM_BUSY, times: null}
  - until: {sent: 20, seconds: 60}
"""


BUILT_FOR_MINUTES = {"Rust 1.0.0"}


@pytest.mark.parametrize(
    "client",
    [pytest.param(name, marks=ON_DEMAND) if name in BUILT_FOR_MINUTES else name for name in CLIENTS],
)
@pytest.mark.timeout(RUST_SECONDS)
def test_a_client_of_every_language_is_judged(client: str, tmp_path: Path) -> None:
    try:
        command = CLIENTS[client]()
    except PeersUnavailable as why:
        pytest.skip(str(why))
    scenario, report = tmp_path / "busy.yaml", tmp_path / "report.json"
    scenario.write_text(BUSY)
    words = ("behave", str(scenario), "--save", str(report), "--output", str(tmp_path), "--", *command)
    ran = subprocess.run(
        [sys.executable, "-m", "pocketmq.cli", *words], capture_output=True, text=True, check=False
    )
    printed = (tmp_path / "busy-1.txt").read_text(errors="replace")
    assert ran.returncode == 0, ran.stdout + ran.stderr + printed
    found = read_report(report).scenarios["busy"].measures
    assert (found.lost, found.killed, found.not_reached) == (0, 0, [])
    assert found.sent >= 40
    assert found.delivered >= 20
    assert abs(found.said["SENT"] - found.sent) <= 1
    assert found.said["GOT"] >= found.delivered - 64, "the last ones may reach it while it ends"


@DAILY
def test_the_document_has_every_scenario_and_client() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    chapters = re.findall(r"^## ([a-z-]+)$\n\n(.*)$", text, re.MULTILINE)
    assert chapters == [(name, read_scenario(name).about) for name in built_in()]
    assert set(re.findall(r"^\| ([A-Z][^|]*?) \|", text, re.MULTILINE)) >= set(CLIENTS)
