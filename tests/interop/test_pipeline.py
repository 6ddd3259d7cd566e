"""The pipeline's wire and store scan against ours, official 4.9.7 and 5.5.0: one body for all three.

What happens inside the server's namespace is `pipeline_program.py`.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

from pocketmq.pipeline.store_files import known_log_end, log_files, log_splits, queue_splits
from pocketmq.pipeline.store_scan import ScanOptions, scan_log, scan_queue

from .processes import Running
from .servers import Server

PROGRAM = Path(__file__).parent / "pipeline_program.py"
COUNT = 500


def test_what_is_sent_is_read_from_the_broker_and_from_its_files(
    side: Server, names: Callable[[str], str]
) -> None:
    topic = names("pipeline")
    log = side.home / "run" / f"{topic}.out"
    program = Running(side.namespace, [sys.executable, str(PROGRAM), topic, str(COUNT)], log, name="pipeline")
    found = json.loads(program.wait_for(r"^FOUND (.*)$", 120.0)[1])
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
