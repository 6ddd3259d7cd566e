"""`pocketmq pipeline up`: jobs run on its engine, and nothing is left when it ends."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("grpc_status", reason="the extra pocketmq[connect] is not installed")
pytest.importorskip("pandas", reason="the extra pocketmq[connect] is not installed")

from pipeline.tables.stores import write_store

CONNECT = """
import sys
from pyspark.sql import SparkSession
SparkSession.builder.remote(sys.argv[1]).getOrCreate().range(1).collect()
"""


def command_lines() -> list[bytes]:
    """Of all processes, which every user can read."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            found.append(path.read_bytes())
    return found


PROGRAM = [sys.executable, "-m", "pocketmq.cli", "pipeline"]


@pytest.mark.on_demand
@pytest.mark.timeout(300)
def test_a_job_runs_on_the_engine_that_stays(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store")
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    engine = subprocess.Popen(
        [*PROGRAM, "up", "--port", "0", "--master", "local[2]"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert engine.stdout is not None
        line = engine.stdout.readline()
        address = re.fullmatch(r"SPARK_REMOTE=(sc://localhost:\d+/;token=(\S+))\n", line)
        assert address is not None
        assert not any(address[2].encode() in arguments for arguments in command_lines())
        for wrong in (address[1].partition(";")[0], address[1] + "x"):
            refused = subprocess.run(
                [sys.executable, "-c", CONNECT, wrong], capture_output=True, text=True, check=False
            )
            assert refused.returncode == 1
            assert "UNAUTHENTICATED" in refused.stderr
        words = ["find", "--engine", "spark", "--store", str(store), "--key", "k5"]
        ran = subprocess.run([*PROGRAM, *words], env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 1, ran.stderr
        assert '{"n": 5}' in ran.stdout
        words = ["sql", "--engine", "spark", "--store", str(store), "select nothing from messages"]
        wrong = subprocess.run(
            [*PROGRAM, *words], env=environment, capture_output=True, text=True, check=False
        )
        assert wrong.returncode == 2
        assert re.fullmatch(r"pocketmq: SQL: .*`nothing` cannot be resolved.*\n", wrong.stderr), wrong.stderr
        second = subprocess.run(
            [*PROGRAM, "up"], env=environment, capture_output=True, text=True, check=False
        )
        assert second.returncode == 2
        assert "an engine is running already" in second.stderr
    finally:
        engine.send_signal(signal.SIGTERM)
        engine.wait(60)
    assert engine.returncode == 0
    assert list(tmp_path.glob("pocketmq-engine*")) == []
