"""Every job of the command line with `--master spark://`, on a master and two workers; one under spark-submit."""

import json
from pathlib import Path

import pytest

from spark.cluster_jobs import JOBS, WITHOUT_SPARK, Job, check_job
from spark.drivers import JOB, SPARK_HOME, run, run_job
from spark.standalone import Standalone

pytestmark = [pytest.mark.on_demand, pytest.mark.timeout(900)]


@pytest.mark.parametrize("job", [*JOBS, *WITHOUT_SPARK], ids=lambda job: job.words)
def test_each_job_runs_on_the_cluster(cluster: Standalone, job_inputs: dict[str, str], job: Job) -> None:
    check_job(job, job_inputs, cluster.env, "--master", cluster.url)


def test_tables_of_a_job_are_written_by_the_executors_and_by_the_driver(
    cluster: Standalone, job_inputs: dict[str, str]
) -> None:
    """`--parquet` is a folder of each table, which the executors write; `--json-file` is written by the driver."""
    import pyarrow.parquet as pq

    out = Path(job_inputs["out"])
    job = Job("stats --store {store} --parquet {out}/p --json-file {out}/p.json", (0,), "Rows:")
    check_job(job, job_inputs, cluster.env, "--master", cluster.url)
    tables = {path.name for path in (out / "p").iterdir() if path.is_dir()}
    assert tables
    assert tables <= json.loads((out / "p.json").read_text()).keys()
    assert all(pq.read_table(out / "p" / name).num_columns for name in tables)


def test_a_job_under_spark_submit_runs_where_spark_submit_says(
    cluster: Standalone, job_inputs: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "job.py").write_text(JOB)
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.url]
    words = [
        "pipeline",
        "sql",
        "select count(*) as n from messages",
        "--store",
        job_inputs["store"],
        "--damaged",
    ]
    ran = run([*submit, str(tmp_path / "job.py"), *words], cluster.env)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    assert "80" in ran.stdout
    assert cluster.applications()[-1] == "pocketmq sql"


def test_a_cluster_that_cannot_be_reached_is_named(cluster: Standalone, job_inputs: dict[str, str]) -> None:
    ran = run_job(
        cluster.env, "find", "--store", job_inputs["store"], "--key", "k1", "--master", "spark://127.0.0.1:1"
    )
    assert ran.returncode in (2, 3)
    (line,) = [one for one in ran.stderr.splitlines() if one.startswith("pocketmq:")]
    assert "spark://127.0.0.1:1" in line
