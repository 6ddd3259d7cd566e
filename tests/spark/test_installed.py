"""PocketMQ as a wheel: Spark finds its formats without registration, and a cluster's executors get it by --py-files."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pocketmq.pipeline.jobs.answers.run import NO_PACKAGE
from pocketmq.testing import EmbeddedServer, RocketMQ

from spark.drivers import SPARK_HOME, need_java, run, run_job
from spark.installed import make_archive, make_environment, make_python, make_wheel
from spark.standalone import environment, standalone_cluster

DRIVER = Path(__file__).with_name("formats_driver.py")
ALL = [f"m{number:02}" for number in range(20)]

pytestmark = [pytest.mark.on_demand, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_java()
    return make_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """A name server's address, a topic of 20 messages in 4 queues, and the store they lie in."""
    store = tmp_path_factory.mktemp("store")
    with EmbeddedServer(store=store) as server:
        one = RocketMQ(server)
        name = one.topic("Wheels", queues=4)
        for number, text in enumerate(ALL):
            one.send(name, text, queue_id=number % 4)
        yield server.namesrv_addr, name, store


def found(argv: list[str], env: Mapping[str, str], folder: Path | None = None) -> dict[str, Any]:
    ran = run(argv, env, folder)
    matched = re.search(r"^FOUND (.*)$", ran.stdout, re.MULTILINE)
    log = [line for line in ran.stderr.splitlines() if " INFO " not in line]
    assert matched, ran.stdout[-1000:] + "\n".join(log)[-4000:]
    what: dict[str, Any] = json.loads(matched[1])
    return what


def test_an_installed_wheel_is_found_without_registration(
    wheel: Path, topic: tuple[str, str, Path], tmp_path: Path
) -> None:
    python = make_python(tmp_path / "python", wheel)
    namesrv_addr, name, store = topic
    words = [namesrv_addr, name, str(store), "local[2]", "finds"]
    what = found([str(python), str(DRIVER), *words], environment(python))
    assert (what["bodies"], what["counted"], what["stored"]) == (ALL, len(ALL), len(ALL))
    assert all(str(tmp_path) in home for home in what["homes"]), what["homes"]


def test_an_archive_of_the_wheel_can_be_imported_without_installation(wheel: Path, tmp_path: Path) -> None:
    """Before 3.13 Python finds a package without an __init__ in an archive only by the entry of its folder."""
    python, archive = make_python(tmp_path / "python"), make_archive(tmp_path, wheel)
    program = "from pyspark_rocketmq import DefaultSource as one, __file__; print(one.name(), __file__)"
    for path, expected in ((archive, f"rocketmq {archive}"), (None, "")):
        env = environment(python) | ({"PYTHONPATH": str(path)} if path else {})
        ran = run([str(python), "-c", program], env)
        assert ran.stdout.startswith(expected) if expected else "No module named" in ran.stderr, ran.stderr


def test_executors_of_a_cluster_import_the_package_from_py_files(
    wheel: Path, topic: tuple[str, str, Path], tmp_path: Path
) -> None:
    """One master, two workers of one core each; PocketMQ is not installed in their Python."""
    python, archive = make_python(tmp_path / "python"), make_archive(tmp_path, wheel)
    namesrv_addr, name, store = topic
    env = environment(python)
    with standalone_cluster(tmp_path, env) as cluster:
        submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.url]
        submit += ["--executor-memory", "512m", "--py-files", str(archive)]
        what = found([*submit, str(DRIVER), namesrv_addr, name, str(store), cluster.url, "registers"], env)
    assert (what["bodies"], what["counted"], what["stored"]) == (ALL, len(ALL), len(ALL))
    assert all(archive.name in home for home in what["homes"]), what["homes"]
    assert len({home.split()[0] for home in what["homes"]}) == 2, "one of the workers did nothing"


def test_a_job_whose_executors_have_no_pocketmq_says_so_in_one_line(
    topic: tuple[str, str, Path], tmp_path: Path
) -> None:
    (tmp_path / "cluster").mkdir()
    env = environment() | {"PYSPARK_PYTHON": str(make_python(tmp_path / "python"))}
    with standalone_cluster(tmp_path / "cluster", env) as cluster:
        ran = run_job(cluster.env, "stats", "--store", str(topic[2]), "--master", cluster.url)
    assert ran.returncode == 2, ran.stderr[-3000:]
    (line,) = [one for one in ran.stderr.splitlines() if one.startswith("pocketmq:")]
    assert line == f"pocketmq: {NO_PACKAGE}"


def test_executors_of_a_cluster_unpack_an_environment_made_by_venv_pack(
    wheel: Path, topic: tuple[str, str, Path], tmp_path: Path
) -> None:
    """The recipe of docs/pipeline-practice.md. The executors' own Python has none of the packages."""
    packed = make_environment(tmp_path / "environment", wheel)
    namesrv_addr, name, store = topic
    env = environment(tmp_path / "environment" / "bin" / "python")
    with standalone_cluster(tmp_path, env) as cluster:
        submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.url]
        submit += ["--executor-memory", "512m", "--archives", f"{packed}#environment"]
        words = [namesrv_addr, name, str(store), cluster.url, "registers"]
        env |= {"PYSPARK_PYTHON": "./environment/bin/python"}
        what = found([*submit, str(DRIVER), *words], env, tmp_path)
    assert (what["bodies"], what["counted"], what["stored"]) == (ALL, len(ALL), len(ALL))
    assert all("/environment/lib/" in home and "/work" in home for home in what["homes"]), what["homes"]
