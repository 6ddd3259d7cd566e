"""A Spark session ready for use: finds Java, uses this Python, registers the formats, sets what helps.

    spark = pocketmq_session("audit", master="local[2]")

`settings` overrides everything set here. Under `spark-submit` its master and settings stay as they are; in a session
from elsewhere, also one of Spark Connect, `register` is all that is needed. Which settings: `settings.py`.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from ...tables.planning.spark_processes import PARALLELISM
from ..sources.journal_source import JournalSource
from ..sources.store_source import StoreSource
from ..sources.topic_source import RocketMQSource
from .java import find_java
from .settings import (
    COMMON_SETTINGS,
    MASTER,
    chosen_master,
    is_connect,
    is_local,
    log_options,
    parallelism_of,
    planning_environment,
    settings_for,
)

_LOGGERS_OF_QUERIES: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def pocketmq_session(
    name: str,
    *,
    master: str | None = None,
    memory: str | None = None,
    settings: Mapping[str, str] | None = None,
    optimize_for_startup: bool = False,
    show_progress: bool = False,
    show_log: bool = False,
) -> SparkSession:
    """A session with the formats registered: the active one if there is one, else a new one. Of the active one only
    `settings` are changed: its master and all else are its maker's.

    `master` may also be a Spark Connect server, `sc://HOST:15002`. Without it `chosen_master` says which applies.
    `memory` is that of the driver; on a local master the default is 1g, and Spark's log is quiet unless the user
    configured it; `show_log` leaves it as Spark has it.
    """
    master, must_be_set = chosen_master(master, settings or {}, os.environ)
    own = {key: value for key, value in (settings or {}).items() if key != MASTER}
    if is_connect(master, os.environ):
        return _connected(master, own)
    active = SparkSession.getActiveSession()
    if active is not None:
        for key, value in own.items():
            active.conf.set(key, value)
        register(active)
        return active
    java_home = _prepare_environment(master)
    chosen = settings_for(
        master,
        memory=memory,
        optimize_for_startup=optimize_for_startup,
        java_home=java_home,
        log="" if show_log else log_options(os.environ),
    )
    if is_local(master):
        chosen["spark.ui.showConsoleProgress"] = "true" if show_progress else "false"
    builder = SparkSession.builder.appName(name)
    if must_be_set:
        builder = builder.master(master)
    for key, value in {**chosen, **own}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if is_local(master):
        spark.sparkContext.setLogLevel("ERROR")
    else:
        _set_where_unset(spark)
    register(spark)
    return spark


def _prepare_environment(master: str) -> Path | None:
    """Set what a JVM and its workers find in the environment; returns the Java that will run.

    On a cluster PYSPARK_PYTHON is the path of a Python on its machines, which is not known here. Under spark-submit the
    JVM is running already.
    """
    if not master:
        return None
    java_home = find_java()
    os.environ["JAVA_HOME"] = str(java_home)
    if is_local(master):
        # Without this, workers start `python3` from PATH, which need not have this package.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return java_home


def _connected(address: str, settings: Mapping[str, str]) -> SparkSession:
    """A session of a Spark Connect server. Its settings are those of that session alone."""
    spark: Any = SparkSession.builder.remote(address).getOrCreate()
    for key, value in {**COMMON_SETTINGS, **settings}.items():
        spark.conf.set(key, value)
    register(spark)
    session: SparkSession = spark
    return session


def _set_where_unset(spark: SparkSession) -> None:
    """Set what helps everywhere, unless the caller, spark-submit or the cluster's files have set it."""
    conf = spark.sparkContext.getConf()
    for key, value in COMMON_SETTINGS.items():
        if not conf.contains(key):
            spark.conf.set(key, value)


def context_of(spark: SparkSession) -> Any:
    """The Spark context of a session; None for one of Spark Connect, which has none."""
    try:
        return spark.sparkContext
    except PySparkException:
        return None


def set_log_level(spark: SparkSession, *, is_verbose: bool) -> None:
    """Spark's log of a job: all of it if `is_verbose`, none of it on a local master, else as the cluster has it.

    An error in a task or a query reaches a job as an exception. The log would print it first, with Java's stack; so
    would PySpark's own loggers, as JSON.
    """
    for name in _LOGGERS_OF_QUERIES:
        PySparkLogger.getLogger(name).disabled = not is_verbose
    context = context_of(spark)
    if context is None:
        return
    if is_verbose:
        context.setLogLevel("INFO")
    elif is_local(context.master):
        context.setLogLevel("OFF")


def register(spark: SparkSession) -> None:
    """Make the formats known to any session, and its parallelism known to them."""
    context = context_of(spark)
    if context is not None:
        conf = dict(context.getConf().getAll())
        context.environment.update(planning_environment(context.master, conf, os.environ))
        context.environment[PARALLELISM] = str(parallelism_of(context.defaultParallelism, conf))
    for source in (RocketMQSource, StoreSource, JournalSource):
        spark.dataSource.register(source)
