"""The command `ingest --every`: a driver that is killed loses and repeats nothing; Ctrl-C ends it in one line."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ

pytest.importorskip("pyspark")

import pyarrow.dataset as ds

from waiting import wait_until

pytestmark = [pytest.mark.on_demand, pytest.mark.timeout(600)]
COUNT = 1_200


def ingest(folder: Path, rocketmq: RocketMQ, *words: str) -> list[str]:
    command = [sys.executable, "-m", "pocketmq.cli", "pipeline", "ingest", "-n", rocketmq.namesrv_addr]
    command += [
        "--topics",
        "Orders",
        "--to",
        str(folder / "table"),
        "--checkpoint",
        str(folder / "checkpoint"),
    ]
    command += [
        "--decode",
        "json",
        "--schema",
        "n int",
        "--bad",
        str(folder / "bad"),
        "--batch-messages",
        "50",
    ]
    return [*command, "--master", "local[2]", *words]


def committed(table: Path) -> list[str]:
    """The files that Spark counts in: those that its log names, not those of a batch that was killed."""
    log = table / "_spark_metadata"
    names: set[str] = set()
    for batch in log.glob("[0-9]*") if log.is_dir() else ():
        for line in batch.read_text().splitlines()[1:]:
            names.add(line.partition('"path":"')[2].partition('"')[0].removeprefix("file://"))
    return sorted(names)


def rows(table: Path, column: str) -> list[object]:
    files = committed(table)
    if not files:
        return []
    return ds.dataset(files, format="parquet").to_table(columns=[column]).column(column).to_pylist()


@pytest.mark.usefixtures("ctrl_c_as_on_a_terminal")
def test_a_killed_driver_loses_and_repeats_nothing_and_ctrl_c_ends_in_one_line(tmp_path: Path) -> None:
    with EmbeddedServer() as server:
        rocketmq = RocketMQ(server)
        rocketmq.topic("Orders", queues=4)
        for number in range(COUNT):
            body = "no JSON" if number % 100 == 7 else f'{{"n": {number}}}'
            rocketmq.send("Orders", body, queue_id=number % 4)
        table = tmp_path / "table"
        killed = subprocess.Popen(
            ingest(tmp_path, rocketmq, "--every", "1 s"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            wait_until(lambda: len(committed(table)) >= 3, timeout=120)
        finally:
            os.killpg(killed.pid, signal.SIGKILL)
            killed.wait()
        some = len(rows(table, "queueOffset"))
        assert 0 < some < COUNT
        with subprocess.Popen(
            ingest(tmp_path, rocketmq, "--every", "1 s"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as stopped:
            try:
                wait_until(lambda: len(rows(table, "queueOffset")) > some, timeout=120)
                os.killpg(stopped.pid, signal.SIGINT)
                output, errors = stopped.communicate(timeout=60)
            finally:
                if stopped.poll() is None:
                    os.killpg(stopped.pid, signal.SIGKILL)
        assert stopped.returncode in (0, 1), errors
        assert "Stopped: the next run with this checkpoint goes on there." in output
        assert "Traceback" not in errors
        assert "ERROR" not in errors
        ended = subprocess.run(
            ingest(tmp_path, rocketmq, "--batch-messages", "2000"),
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert ended.returncode == 1, ended.stderr
        assert "messages cannot be decoded" in ended.stdout
        values = [value["n"] for value in rows(table, "value")]  # type: ignore[index]
        assert sorted(values) == [number for number in range(COUNT) if number % 100 != 7]
        assert Counter(rows(tmp_path / "bad", "body")) == {b"no JSON": COUNT // 100}
