"""Spark's own Connect server on a cluster: every job, sources and sink through it. The clients have no JVM."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc_status", reason="the extra pocketmq[connect] is not installed")
pytest.importorskip("pandas", reason="the extra pocketmq[connect] is not installed")

from ports import fixed_port
from spark.cluster_jobs import JOBS, MORE, Job, check_job
from spark.drivers import run
from spark.standalone import LOGGING, Standalone, spark_daemon

pytestmark = [pytest.mark.on_demand, pytest.mark.timeout(600)]

CLIENT = """
import sys
from pocketmq.pipeline import pocketmq_session
address, store, folder = sys.argv[1:]
spark = pocketmq_session("client")
rows = spark.createDataFrame([(f"m{n}",) for n in range(5)], "body string")
rows.write.format("rocketmq").mode("append").option("nameServer", address).option("topic", "Sent").save()
options = {"nameServer": address, "subscribe": "Sent", "startingOffsets": "earliest"}
read = spark.read.format("rocketmq").options(**options).load()
print("READ", sorted(bytes(row.body).decode() for row in read.select("body").collect()))
print("STORED", spark.read.format("rocketmq-store").option("onCorrupt", "report").load(store).count())
stream = spark.readStream.format("rocketmq").options(**options).load().selectExpr("cast(body as string) text")
query = stream.writeStream.format("parquet").option("path", folder + "/rows")
query = query.option("checkpointLocation", folder + "/checkpoint").trigger(availableNow=True).start()
query.awaitTermination()
print("STREAMED", spark.read.parquet(folder + "/rows").count())
spark.stop()
"""


@pytest.fixture(scope="module")
def client_env(cluster: Standalone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of programs that use the server."""
    folder, port = tmp_path_factory.mktemp("server"), fixed_port()
    (folder / "log4j2.properties").write_text(LOGGING)
    server = [
        *("org.apache.spark.deploy.SparkSubmit", "--master", cluster.url),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.driver.memory=1g"),
        "spark-internal",
    ]
    env = cluster.env | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    defaults = Path(env["SPARK_CONF_DIR"]) / "spark-defaults.conf"
    (folder / "spark-defaults.conf").write_bytes(defaults.read_bytes())
    of_server = env | {"SPARK_CONF_DIR": str(folder)}
    with spark_daemon(server, of_server, folder / "server.out", "Connect server started"):
        without_java = {name: text for name, text in env.items() if name != "JAVA_HOME"}
        yield without_java | {"SPARK_REMOTE": f"sc://127.0.0.1:{port}"}


@pytest.mark.parametrize("job", [*JOBS, *MORE], ids=lambda job: job.words)
def test_each_job_runs_on_the_server(
    cluster: Standalone, client_env: dict[str, str], job_inputs: dict[str, str], job: Job
) -> None:
    executors = cluster.executors()
    assert len(executors) == 2
    is_on_spark = "--engine" in job.words or re.match("(ingest|export|replay) ", job.words)
    check_job(job, job_inputs, client_env, *(() if is_on_spark else ("--engine", "spark")))
    assert cluster.executors() == executors, "the server was not used, or lost its executors"


def test_topics_and_stores_are_read_streamed_and_written(
    client_env: dict[str, str], job_inputs: dict[str, str], tmp_path: Path
) -> None:
    words = [job_inputs["address"], job_inputs["store"], str(tmp_path)]
    ran = run([sys.executable, "-c", CLIENT, *words], client_env)
    printed = ran.stdout + ran.stderr[-3000:]
    assert "READ ['m0', 'm1', 'm2', 'm3', 'm4']" in ran.stdout, printed
    assert re.search(r"STORED \d+", ran.stdout), printed
    assert "STREAMED 5" in ran.stdout, printed


def test_the_server_outlives_a_killed_executor(
    cluster: Standalone, client_env: dict[str, str], job_inputs: dict[str, str]
) -> None:
    victim = cluster.executors()[0]
    os.kill(victim, signal.SIGKILL)
    job = Job("sql 'select count(*) as n from messages' --store {store} --damaged", (0,), "80")
    check_job(job, job_inputs, client_env, "--engine", "spark")
    assert victim not in cluster.executors()
