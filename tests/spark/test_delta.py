"""Topics into a Delta table: by the job `ingest`, and by the MERGE of docs/pipeline-practice.md.

Delta must be built for the Spark that runs it, and is for Spark 4.2: it is installed into a folder of its own, with
Delta's Python package; Spark fetches Delta's jars. That takes minutes and a network.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ

from spark.drivers import JOB, pip, run

pytestmark = [pytest.mark.on_demand, pytest.mark.timeout(1500)]
PACKAGES = ("pyspark==4.2.0", "delta-spark==4.4.0")
DOCUMENT = Path(__file__).parents[2] / "docs" / "pipeline-practice.md"
SETTINGS = {
    "spark.jars.packages": "io.delta:delta-spark_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
AROUND_THE_RECIPE = """
import json, sys
from pocketmq.pipeline import pocketmq_session
from pyspark.sql import functions as F

spark = pocketmq_session("merge", master="local[2]", settings=json.loads(sys.argv[2]))
source = spark.readStream.format("rocketmq").option("rocketmq.namesrv.addr", sys.argv[1])
source = source.options(subscribe="Orders", startingOffsets="earliest").load()
empty = spark.createDataFrame([], "keys string, body binary")
empty.write.format("delta").mode("ignore").save("orders-table")
{recipe}
query.processAllAvailable()
query.stop()
spark.stop()
"""


def recipe() -> str:
    """The program in the document, which keeps its query here."""
    blocks = re.findall(r"```text\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    (found,) = [block for block in blocks if "import DeltaTable" in block]
    return found.replace("\nsource.writeStream", "\nquery = source.writeStream")


class DeltaSpark:
    """Runs programs in a folder, with a Spark that has a Delta."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        packages = folder / "packages"
        pip("install", "--quiet", "--target", str(packages), *PACKAGES, what=", ".join(PACKAGES))
        # Jars are resolved in a home of their own: a Maven repository in the user's may have files without their jars.
        home = folder / "home"
        self._env = {**os.environ, "PYTHONPATH": str(packages), "JAVA_TOOL_OPTIONS": f"-Duser.home={home}"}

    def run(self, *words: str) -> str:
        """What the program prints."""
        ran = run([sys.executable, *words], self._env, self.folder)
        if "unresolved dependency" in ran.stderr:
            pytest.skip("Delta's jars cannot be fetched here")
        assert ran.returncode == 0, (ran.stdout + ran.stderr)[-4000:]
        return ran.stdout


@pytest.fixture(scope="module")
def delta(tmp_path_factory: pytest.TempPathFactory) -> DeltaSpark:
    return DeltaSpark(tmp_path_factory.mktemp("delta"))


def rows(table: Path, columns: list[str]) -> list[tuple[Any, ...]]:
    """The rows of the files that the log of a Delta table has, sorted."""
    files: set[str] = set()
    for commit in sorted(table.glob("_delta_log/*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                files.add(action["add"]["path"])
            if "remove" in action:
                files.discard(action["remove"]["path"])
    found = [row for path in files for row in pq.ParquetFile(table / path).read(columns=columns).to_pylist()]
    return sorted(tuple(row[name] for name in columns) for row in found)


def test_ingest_appends_to_a_delta_table_and_continues(delta: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "table"
    words = ["--topics", "Orders", "--to", str(table), "--checkpoint", str(tmp_path / "checkpoint")]
    words += ["--format", "delta", "--master", "local[2]"]
    words += [word for name, value in SETTINGS.items() for word in ("--conf", f"{name}={value}")]
    with EmbeddedServer() as server:
        rocketmq = RocketMQ(server)
        rocketmq.topic("Orders", queues=2)
        sent: list[bytes] = []
        for count in (5, 3, 0):
            for _ in range(count):
                sent.append(b"order %d" % len(sent))
                rocketmq.send("Orders", sent[-1])
            delta.run("-c", JOB, "pipeline", "ingest", "-n", rocketmq.namesrv_addr, *words)
            assert rows(table, ["body"]) == sorted((body,) for body in sent)


def test_the_merge_of_the_recipes_keeps_the_last_message_of_each_key(delta: DeltaSpark) -> None:
    program = AROUND_THE_RECIPE.format(recipe=recipe())
    with EmbeddedServer() as server:
        rocketmq = RocketMQ(server)
        rocketmq.topic("Orders", queues=1)
        rocketmq.send("Orders", "first", keys="k1")
        rocketmq.send("Orders", "other", keys="k2")
        delta.run("-c", program, rocketmq.namesrv_addr, json.dumps(SETTINGS))
        rocketmq.send("Orders", "second", keys="k1")
        delta.run("-c", program, rocketmq.namesrv_addr, json.dumps(SETTINGS))
    table = delta.folder / "orders-table"
    assert rows(table, ["keys", "body"]) == [("k1", b"second"), ("k2", b"other")]
