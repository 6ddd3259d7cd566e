"""A class archive makes a JVM start sooner, and one that does not fit changes nothing."""

import sys
from pathlib import Path

import pytest
from pocketmq.pipeline.errors import PipelineError
from pocketmq.pipeline.spark.session.class_archive import archive_options, archive_path
from pocketmq.pipeline.spark.session.java import find_java
from pocketmq.pipeline.spark.session.prepare import make_archive
from pocketmq.pipeline.spark.session.settings import settings_for

from spark.drivers import run


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def make_home(folder: Path, release: str) -> Path:
    folder.mkdir()
    (folder / "release").write_text(release)
    return folder


def test_each_java_has_its_own_archive(cache: Path, tmp_path: Path) -> None:
    one = make_home(
        tmp_path / "one", 'IMPLEMENTOR="X"\nJAVA_RUNTIME_VERSION="21.0.8+9/a b"\nJAVA_VERSION="21.0.8"\n'
    )
    other = make_home(tmp_path / "other", 'JAVA_VERSION="17.0.15"\n')
    assert archive_path(one).parent == cache / "pocketmq"
    assert archive_path(one).name.endswith("-java-21.0.8+9_a_b.jsa")
    assert archive_path(other).name.endswith("-java-17.0.15.jsa")


def test_a_session_names_an_archive_that_exists(cache: Path, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", "")
    options = settings_for("local[2]", java_home=home)["spark.driver.extraJavaOptions"]
    assert "SharedArchiveFile" not in options
    archive = archive_path(home)
    archive.parent.mkdir(parents=True)
    archive.touch()
    options = settings_for("local[2]", java_home=home)["spark.driver.extraJavaOptions"]
    assert f" -XX:SharedArchiveFile={archive} " in options


def test_a_folder_that_no_option_can_name_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a b"))
    home = make_home(tmp_path / "home", "")
    with pytest.raises(PipelineError, match="a b/pocketmq must have no blank in its name"):
        make_archive(home, "127.0.0.1:9876")
    archive_path(home).parent.mkdir(parents=True)
    archive_path(home).touch()
    assert archive_options(home) == ""


@pytest.mark.usefixtures("cache")
def test_a_java_that_cannot_read_the_archive_starts_without_output() -> None:
    home = find_java()
    archive_path(home).parent.mkdir(parents=True)
    archive_path(home).write_bytes(b"not an archive")
    runs = [
        run([home / "bin" / "java", *options, "--version"]) for options in ([], archive_options(home).split())
    ]
    assert runs[1].stderr == ""
    assert runs[1].stdout == runs[0].stdout.replace(", sharing", "")


@pytest.mark.on_demand
def test_prepare_makes_an_archive_that_a_session_uses(cache: Path) -> None:
    made = run([Path(sys.executable).with_name("pocketmq"), "pipeline", "prepare"])
    archive = archive_path(find_java())
    assert (made.returncode, made.stdout, made.stderr) == (0, f"Made {archive}.\n", "")
    assert [one.name for one in (cache / "pocketmq").iterdir()] == [archive.name], "nothing else is left"
    program = (
        "from pocketmq.pipeline.spark.session.session import pocketmq_session\n"
        "spark = pocketmq_session('quick', master='local[1]')\n"
        "runtime = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()\n"
        "print(spark.range(7).count(), list(runtime.getInputArguments()))\n"
    )
    ran = run([sys.executable, "-c", program])
    assert ran.stdout.startswith("7 "), ran.stderr[-3000:]
    assert f"-XX:SharedArchiveFile={archive}" in ran.stdout
