"""`pocketmq pipeline up --master spark://`: one engine on a cluster, and every job through it by Spark Connect."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("grpc_status", reason="the extra pocketmq[connect] is not installed")
pytest.importorskip("pandas", reason="the extra pocketmq[connect] is not installed")

from spark.cluster_jobs import JOBS, MORE, Job, check_job, job_inputs
from spark.drivers import JOB
from spark.standalone import Standalone

pytestmark = [pytest.mark.on_demand, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with job_inputs(tmp_path_factory.mktemp("inputs")) as made:
        yield made


@pytest.fixture(scope="module")
def engine_env(cluster: Standalone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which jobs find the engine."""
    folder = tmp_path_factory.mktemp("engine")
    env = cluster.env | {"XDG_RUNTIME_DIR": str(folder)}
    words = ["up", "--port", "0", "--master", cluster.url]
    log = folder / "engine.err"
    with log.open("wb") as errors:
        engine = subprocess.Popen(
            [sys.executable, "-c", JOB, "pipeline", *words], env=env, stdout=subprocess.PIPE, stderr=errors
        )
    try:
        assert engine.stdout is not None
        assert engine.stdout.readline().startswith(b"SPARK_REMOTE=sc://"), log.read_text()[-3000:]
        # A client needs no Java.
        yield {name: text for name, text in env.items() if name != "JAVA_HOME"}
    finally:
        engine.send_signal(signal.SIGTERM)
        engine.wait(60)


@pytest.mark.parametrize("job", [*JOBS, *MORE], ids=lambda job: job.words)
def test_each_job_runs_on_the_engine_of_the_cluster(
    cluster: Standalone, engine_env: dict[str, str], inputs: dict[str, str], job: Job
) -> None:
    executors = cluster.executors()
    assert len(executors) == 2
    options = () if "--engine" in job.words or not _has_engine(job) else ("--engine", "spark")
    check_job(job, inputs, engine_env, *options)
    assert cluster.executors() == executors, "the engine was not used, or lost its executors"


def _has_engine(job: Job) -> bool:
    return job.words.split()[0] not in ("ingest", "export", "replay", "behaviour")


def test_the_engine_outlives_a_killed_executor(
    cluster: Standalone, engine_env: dict[str, str], inputs: dict[str, str]
) -> None:
    victim = cluster.executors()[0]
    os.kill(victim, signal.SIGKILL)
    job = Job("sql 'select count(*) as n from messages' --store {store} --damaged", (0,), "80")
    check_job(job, inputs, engine_env, "--engine", "spark")
    assert victim not in cluster.executors()
