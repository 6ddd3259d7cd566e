"""The pipeline's broker client, lease and store scan: the same test on ours, official 4.9.7 and official 5.5.0.

Also the report about two Java consumers and a Python one, made from our broker's journal. `pipeline_program.py` runs
inside the server's namespace.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

from pocketmq.pipeline.tables.files.consume_queues import known_log_end, queue_splits
from pocketmq.pipeline.tables.files.log_files import log_files, log_splits
from pocketmq.pipeline.tables.files.scan import ScanOptions, scan_log, scan_queue

from conformance.clients.test_mixed_groups import SETTLE_S, Place, leave, member, of_queues, seen, send
from conformance.on_demand import ON_DEMAND
from conformance.servers.processes import Running
from conformance.servers.server import Names, Server, StartServer

PROGRAM = Path(__file__).parent / "pipeline_program.py"
COUNT = 500


def test_sent_messages_are_read_from_the_broker_and_from_its_files(side: Server, names: Names) -> None:
    topic = names("pipeline")
    log = side.home / "run" / f"{topic}.out"
    program = Running(side.namespace, [sys.executable, str(PROGRAM), topic, str(COUNT)], log, name="pipeline")
    found = json.loads(program.wait_for(r"^FOUND (.*)\n", 120.0)[1])
    assert program.finish() == 0
    assert found == {
        "bodies": sorted(f"body {number}" for number in range(COUNT)),
        "ids": COUNT,
        "places": COUNT,
        "keys": COUNT,
        "tagged": COUNT // 2,
        "split": COUNT,
        "large_pulls": COUNT,
        "committed": True,
        "leases": ["all", "first", "all"],
        "later": 0,
    }
    _check_files(side.store, topic)


def _check_files(store: Path, topic: str) -> None:
    """The store of the running server, scanned along the log in small splits and along the queues."""
    topics = frozenset((topic,))
    files = log_files(store / "commitlog")
    queues = queue_splits(store / "consumequeue", frozenset())
    options = ScanOptions(topics=topics, verifies_crc=True)
    splits = log_splits(files, 16 << 20, 2, known_log_end(queues))
    along_log = [
        body
        for split in splits
        for found in scan_log(split, options)
        if found.records is not None
        for body in found.records.column("body").to_pylist()
    ]
    along_queues = [
        body
        for split in queue_splits(store / "consumequeue", topics)
        for found in scan_queue(split, files, options)
        if found.records is not None
        for body in found.records.column("body").to_pylist()
    ]
    wanted = sorted(f"body {number}".encode() for number in range(COUNT))
    assert sorted(along_log) == wanted
    assert sorted(along_queues) == wanted


@pytest.mark.timeout(600)
@ON_DEMAND
def test_the_report_shows_what_java_and_python_members_did(
    fresh_server: StartServer, names: Names, tmp_path: Path
) -> None:
    """4.9.8 starts, 5.5.0 joins, Python joins; then they leave in that order. What they printed is the expectation."""
    pytest.importorskip("pyspark", reason="the report needs the extra pocketmq[spark]")
    prefix, journal = names("report"), tmp_path / "journal"
    topic, group = f"{prefix}_t", f"{prefix}_g"
    server = fresh_server("ours", options=("--journal", str(journal)))
    sent = send(server, topic, 40)
    said: dict[str, list[Place]] = {}
    members: dict[str, Running] = {}
    for kind in ("java-4.9", "java-5.5", "python"):
        members[kind] = member(server, kind, topic, group, "concurrent")
        members[kind].wait_for(r"^JOINED$", 60)
        time.sleep(SETTLE_S)
        sent |= send(server, topic, 40)
    for kind in ("java-4.9", "java-5.5"):
        said[kind] = leave(members[kind])
        time.sleep(SETTLE_S)
        sent |= send(server, topic, 40)
    by_others = {place for places in said.values() for place in places}
    deadline = time.monotonic() + 60
    while not sent <= by_others | set(seen(members["python"])) and time.monotonic() < deadline:
        time.sleep(0.05)
    said["python"] = leave(members["python"])
    server.stop()
    assert sent <= {place for places in said.values() for place in places}
    report = _report(journal, tmp_path)
    _check_members(report, group)
    _check_reading(report, group, said)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"Group {group}" in page
    assert page.count("<svg") >= 2


def _report(journal: Path, folder: Path) -> dict[str, Any]:
    """The job's JSON; its HTML page is beside it. Exit code 1 means that the report has findings."""
    output = folder / "report.json"
    words = [
        "--json-file",
        str(output),
        "--html",
        str(folder / "report.html"),
        "--master",
        "local[2]",
        "--quiet",
    ]
    program = [sys.executable, "-m", "pocketmq.cli", "pipeline", "behaviour", str(journal), *words]
    ran = subprocess.run(program, capture_output=True, text=True, check=False, env=dict(os.environ))
    report: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {}
    assert ran.returncode == (1 if report.get("findings") else 0), ran.stderr[-3000:]
    return report


def _check_members(report: dict[str, Any], group: str) -> None:
    members = [one for one in report["members"] if one["group"] == group]
    assert [one["language"] for one in members] == ["JAVA", "JAVA", "PYTHON"], "in the order of their joining"
    assert [one["release"] for one in members[:2]] == ["4.9.8", "5.5.0"]
    assert [one["how"] for one in members] == ["unregistered"] * 3
    assert [one["until"] for one in members] == sorted(one["until"] for one in members)
    assert {one["consumeFromWhere"] for one in members} == {"CONSUME_FROM_FIRST_OFFSET"}


def _check_reading(report: dict[str, Any], group: str, said: dict[str, list[Place]]) -> None:
    clients = [one["client"] for one in report["members"] if one["group"] == group]
    kind_of = dict(zip(clients, ("java-4.9", "java-5.5", "python"), strict=True))
    owners = [one for one in report["owners"] if one["group"] == group and not one["topic"].startswith("%")]
    for client, kind in kind_of.items():
        owned = [one for one in owners if one["client"] == client]
        assert {one["queueId"] for one in owned if one["messages"]} == set(of_queues(said[kind]))
        assert sum(one["messages"] for one in owned) >= len(set(said[kind]))
    assert {one["queueId"] for one in owners if one["client"] == clients[0]} == {0, 1, 2, 3}, "alone at first"
    last = {queue_id: max((one for one in owners if one["queueId"] == queue_id), key=lambda one: one["until"])
            for queue_id in range(4)}  # fmt: skip
    assert {one["client"] for one in last.values()} == {clients[2]}, "alone at last"
    first = {one["queueId"]: one for one in report["positions"] if one["client"] == clients[0] and one["topic"] in
             {one["topic"] for one in owners}}  # fmt: skip
    assert {one["firstPull"] for one in first.values()} == {0}
    assert all("read all" in one["rule"] for one in first.values())
    rates = {one["client"]: one for one in report["clients"] if one["group"] == group}
    assert all(rates[client]["pulls"] and rates[client]["emptyShare"] < 1 for client in clients)
