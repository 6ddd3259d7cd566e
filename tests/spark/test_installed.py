"""PocketMQ as a wheel: Spark finds its formats without registration, and a cluster's executors get it by --py-files."""

import contextlib
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ

pytest.importorskip("pyspark")

import pyspark
from pocketmq.pipeline.errors import NoJavaError
from pocketmq.pipeline.session.java import find_java

from ports import fixed_port
from spark.installed import WheelUnavailable, make_archive, make_python, make_wheel

DRIVER = Path(__file__).with_name("formats_driver.py")
SPARK_HOME = Path(pyspark.__file__).parent
LIMIT_SECONDS = 420
ALL = [f"m{number:02}" for number in range(20)]

pytestmark = [pytest.mark.on_demand, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        find_java()
        return make_wheel(tmp_path_factory.mktemp("wheel"))
    except (NoJavaError, WheelUnavailable) as missing:
        pytest.skip(str(missing))


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


def environment(python: Path) -> dict[str, str]:
    """The environment without this Python's own paths; drivers and workers use `python`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK"))}
    return kept | {
        "JAVA_HOME": str(find_java()),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
    }


def found(argv: list[str], env: Mapping[str, str]) -> dict[str, Any]:
    ran = subprocess.run(argv, capture_output=True, text=True, env=env, check=False, timeout=LIMIT_SECONDS)
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


@contextlib.contextmanager
def spark_daemon(argv: list[str], env: Mapping[str, str], log: Path, ready: str) -> Iterator[None]:
    """Starts a master or worker of Spark's own cluster manager, and waits until it is ready."""
    program = str(SPARK_HOME / "bin" / "spark-class")
    with log.open("wb") as output:
        process = subprocess.Popen([program, *argv], env=env, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + LIMIT_SECONDS
        while not re.search(ready, log.read_text(errors="replace")):
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def test_an_archive_of_the_wheel_can_be_imported_without_installation(wheel: Path, tmp_path: Path) -> None:
    """Before 3.13 Python finds a package without an __init__ in an archive only by the entry of its folder."""
    python, archive = make_python(tmp_path / "python"), make_archive(tmp_path, wheel)
    program = "from pyspark_rocketmq import DefaultSource as one, __file__; print(one.name(), __file__)"
    for path, expected in ((archive, f"rocketmq {archive}"), (None, "")):
        env = environment(python) | ({"PYTHONPATH": str(path)} if path else {})
        ran = subprocess.run(
            [str(python), "-c", program], capture_output=True, text=True, env=env, check=False
        )
        assert ran.stdout.startswith(expected) if expected else "No module named" in ran.stderr, ran.stderr


def test_executors_of_a_cluster_import_the_package_from_py_files(
    wheel: Path, topic: tuple[str, str, Path], tmp_path: Path
) -> None:
    """One master, two workers of one core each; PocketMQ is not installed in their Python."""
    python, archive = make_python(tmp_path / "python"), make_archive(tmp_path, wheel)
    namesrv_addr, name, store = topic
    # Quiet sessions of this package log nothing; a daemon's "ready" is an INFO line.
    (tmp_path / "log4j2.properties").write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.stdout.ref = console\nappender.console.type = Console\n"
        "appender.console.name = console\nappender.console.layout.type = PatternLayout\n"
        "appender.console.layout.pattern = %p %c{1}: %m%n\n"
    )
    env = environment(python)
    daemon_env = env | {"SPARK_CONF_DIR": str(tmp_path), "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC"}
    address = f"127.0.0.1:{fixed_port()}"
    host, port = address.split(":")
    deploy = "org.apache.spark.deploy"
    master = [f"{deploy}.master.Master", "--host", host, "--port", port, "--webui-port", "0"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(spark_daemon(master, daemon_env, tmp_path / "master.out", "state: ALIVE"))
        for number in range(2):
            words = ["--host", host, "--webui-port", "0", "--cores", "1", "--memory", "700m"]
            worker = [
                f"{deploy}.worker.Worker",
                *words,
                "-d",
                str(tmp_path / f"work{number}"),
                f"spark://{address}",
            ]
            log = tmp_path / f"worker{number}.out"
            stack.enter_context(spark_daemon(worker, daemon_env, log, "Successfully registered"))
        submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", f"spark://{address}"]
        submit += ["--executor-memory", "512m", "--py-files", str(archive)]
        words = [namesrv_addr, name, str(store), f"spark://{address}", "registers"]
        what = found([*submit, str(DRIVER), *words], env)
    assert (what["bodies"], what["counted"], what["stored"]) == (ALL, len(ALL), len(ALL))
    assert all(archive.name in home for home in what["homes"]), what["homes"]
    assert len({home.split()[0] for home in what["homes"]}) == 2, "one of the workers did nothing"
