"""Which master a session uses, and that what helps one machine is not set on a cluster."""

import os
import sys
from pathlib import Path

import pytest
from pocketmq.pipeline.spark.session import session
from pocketmq.pipeline.spark.session.settings import (
    chosen_master,
    is_connect,
    parallelism_of,
    planning_environment,
    settings_for,
)
from pocketmq.pipeline.tables.planning.spark_processes import PARALLELISM, default_parallelism


@pytest.mark.parametrize(
    ("asked", "settings", "environ", "master", "is_set"),
    [
        (None, {}, {}, "local[*]", True),
        ("yarn", {}, {"PYSPARK_GATEWAY_PORT": "1"}, "yarn", True),
        (None, {"spark.master": "spark://h:1"}, {}, "spark://h:1", True),
        (None, {}, {"PYSPARK_GATEWAY_PORT": "1"}, "", False),
        (None, {}, {"SPARK_REMOTE": "sc://h:1"}, "sc://h:1", True),
    ],
)
def test_the_master_is_the_one_asked_for_or_else_spark_s_own(
    asked: str | None, settings: dict[str, str], environ: dict[str, str], master: str, is_set: bool
) -> None:
    assert chosen_master(asked, settings, environ) == (master, is_set)


@pytest.mark.parametrize(
    ("master", "environ", "expected"),
    [
        ("sc://h:1", {}, True),
        ("local[*]", {"SPARK_REMOTE": "local[*]"}, True),
        ("local[*]", {}, False),
        ("yarn", {"SPARK_REMOTE": "local[*]"}, False),
    ],
)
def test_a_local_master_named_as_the_remote_one_is_a_server_that_spark_starts(
    master: str, environ: dict[str, str], expected: bool
) -> None:
    assert is_connect(master, environ) is expected


def test_the_master_of_spark_s_own_file_is_left_in_place(tmp_path: Path) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text("# spark.master yarn\nspark.master   spark://h:7077\n")
    for environ in ({"SPARK_CONF_DIR": str(folder)}, {"SPARK_HOME": str(tmp_path)}):
        assert chosen_master(None, {}, environ) == ("spark://h:7077", False)
    (folder / "spark-defaults.conf").write_text("spark.driver.memory 2g\n")
    assert chosen_master(None, {}, {"SPARK_HOME": str(tmp_path)}) == ("local[*]", True)


@pytest.mark.parametrize("master", ["spark://h:1", "yarn", "k8s://h", "local-cluster[1,1,1024]", ""])
def test_a_cluster_gets_no_setting_that_is_for_one_machine(master: str) -> None:
    assert settings_for(master, optimize_for_startup=True, java_home=Path("/java")) == {}
    assert settings_for(master, memory="3g") == {"spark.driver.memory": "3g"}


@pytest.mark.parametrize(
    ("master", "conf", "environ", "expected"),
    [
        ("local[4]", {}, {"PATH": "/bin"}, {"OMP_NUM_THREADS": "1"}),
        ("local[4]", {"spark.executorEnv.OMP_NUM_THREADS": "2"}, {}, {}),
        ("local[4]", {}, {"OPENBLAS_NUM_THREADS": "2"}, {}),
        ("local[4]", {}, {"OMP_NUM_THREADS": "2"}, {}),
        ("spark://h:1", {}, {}, {}),
        ("", {}, {}, {}),
    ],
)
def test_processes_that_plan_reads_on_one_machine_start_no_threads_for_numpy(
    master: str, conf: dict[str, str], environ: dict[str, str], expected: dict[str, str]
) -> None:
    assert planning_environment(master, conf, environ) == expected


@pytest.mark.parametrize("master", ["spark://h:1", "yarn", "k8s://h", ""])
def test_the_python_of_a_cluster_s_executors_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, master: str
) -> None:
    monkeypatch.setattr(session, "find_java", lambda: tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    for name in ("PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    session._prepare_environment(master)
    assert os.environ["PYSPARK_PYTHON"] == "./environment/bin/python"
    assert not {"PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"} & os.environ.keys()
    session._prepare_environment("local[2]")
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"


def test_a_local_session_has_as_many_shuffle_partitions_as_cores() -> None:
    for master, cores in (("local", "1"), ("local[3]", "3"), ("local[4,2]", "4")):
        chosen = settings_for(master)
        assert chosen["spark.sql.shuffle.partitions"] == cores
        assert chosen["spark.driver.memory"] == "1g"
        assert chosen["spark.ui.enabled"] == "false"


def test_planning_processes_learn_how_many_tasks_run_at_once() -> None:
    assert default_parallelism({PARALLELISM: "12"}) == 12
    assert default_parallelism({PARALLELISM: "0"}) == 1
    assert default_parallelism({}) >= 1
    assert parallelism_of(2, {}) == 2
    assert parallelism_of(2, {"spark.executor.instances": "3", "spark.executor.cores": "4"}) == 12
    assert parallelism_of(2, {"spark.cores.max": "8"}) == 8
    assert parallelism_of(20, {"spark.cores.max": "8", "spark.executor.instances": "x"}) == 20
