"""A Spark session ready for use: finds Java, uses this Python, registers the formats, sets what helps.

    spark = pocketmq_session("audit", master="local[2]")

`settings` overrides everything set here. On a cluster `spark-submit` creates the session, and `register` is all that is
needed.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from ..sources.journal_source import JournalSource
from ..sources.store_source import StoreSource
from ..sources.topic_source import RocketMQSource
from .class_archive import archive_options
from .java import find_java

FILE_MANAGER: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


def settings_for(
    master: str, *, memory: str = "1g", optimize_for_startup: bool = False, java_home: Path | None = None
) -> dict[str, str]:
    """The settings of this package's sessions.

    `optimize_for_startup` limits the JVM to its first compiler, which suits tests and short jobs. `java_home` is the
    Java that will run; its class archive is used if there is one.
    """
    java_options = "-XX:+UseSerialGC" + (" -XX:TieredStopAtLevel=1" if optimize_for_startup else "")
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
    optimize_for_startup: bool = False,
    shows_progress: bool = False,
) -> SparkSession:
    """A session with the formats registered: the active one if there is one, else a new one."""
    java_home = None
    if SparkSession.getActiveSession() is None:
        java_home = find_java()
        os.environ["JAVA_HOME"] = str(java_home)
        # Without this, workers start `python3` from PATH, which need not have this package.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    chosen = settings_for(
        master, memory=memory, optimize_for_startup=optimize_for_startup, java_home=java_home
    )
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
    """Make the formats known to any session."""
    for source in (RocketMQSource, StoreSource, JournalSource):
        spark.dataSource.register(source)
