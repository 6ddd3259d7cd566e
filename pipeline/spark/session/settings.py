"""Which master a session uses, and which settings it gets. No Spark.

Much of what helps on one machine harms a cluster: a number of shuffle partitions taken from this machine, this Python's
path for workers elsewhere, checkpoint files renamed as on a local disk. So those settings are for local masters only.
"""

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from .class_archive import archive_options

LOCAL: Final = "local[*]"
MASTER: Final = "spark.master"
DEFAULT_MEMORY: Final = "1g"
FILE_MANAGER: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
STACK: Final = "-Xss16m"
"""Spark searches the text of the exception that ends a stopped `foreachBatch` by a regular expression that needs levels
of the stack for each letter. With Java's 1 MB the thread of the query dies of that."""
OF_EXECUTORS: Final = "spark.executorEnv.OMP_NUM_THREADS"
COMMON_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
}
"""A cluster's sessions get these too, unless they are set there: times are UTC, and filters reach the readers."""

_QUIET: Final = Path(__file__).with_name("log4j2.properties")
"""The log configuration of a local session's JVM, unless the user has one. With Spark's own, each start prints four
lines that say nothing, and each stream that ends badly the stack of an exception that the program gets as well."""
_OF_JAVA: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS")
"""Variables that may hold options of the JVM."""


def is_local(master: str) -> bool:
    """Whether driver and tasks are one process on this machine."""
    return re.match(r"local(\[|$)", master) is not None


def is_connect(master: str, environ: Mapping[str, str]) -> bool:
    """Whether the session is that of a Spark Connect server: its address, or what `SPARK_REMOTE` names. That may be a
    local master, for which Spark starts a server."""
    return master.startswith("sc://") or master == environ.get("SPARK_REMOTE")


def chosen_master(
    asked: str | None, settings: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[str, bool]:
    """(the master that Spark will use, whether the session must set it).

    A master that was asked for wins. Else `spark.master` of the settings, the server in `SPARK_REMOTE`, what
    `spark-submit` was started with (its text is not known here: ""), and `spark.master` of `spark-defaults.conf`
    apply, and are left as they are. Without any of them it is `local[*]`.
    """
    if asked is not None:
        return asked, True
    if MASTER in settings:
        return settings[MASTER], True
    if environ.get("SPARK_REMOTE"):
        return environ["SPARK_REMOTE"], True
    if environ.get("PYSPARK_GATEWAY_PORT"):  # this program was started by spark-submit
        return "", False
    in_file = re.search(r"^\s*spark\.master[\s=:]+(\S+)", _defaults(_settings_folder(environ)), re.MULTILINE)
    return (LOCAL, True) if in_file is None else (in_file[1], False)


def _settings_folder(environ: Mapping[str, str], home: str | None = None) -> Path | None:
    """Where Spark looks for its files; `home` is where it is installed if the environment does not say it."""
    if environ.get("SPARK_CONF_DIR"):
        return Path(environ["SPARK_CONF_DIR"])
    home = environ.get("SPARK_HOME") or home
    return Path(home) / "conf" if home else None


def _defaults(folder: Path | None) -> str:
    """The text of `spark-defaults.conf`; empty if there is none."""
    try:
        return "" if folder is None else (folder / "spark-defaults.conf").read_text("utf-8", "replace")
    except OSError:
        return ""


def log_options(environ: Mapping[str, str]) -> str:
    """The JVM option that names the quiet configuration; empty if the user configured Spark's log."""
    is_usable = _QUIET.is_file() and " " not in str(_QUIET)  # a JVM option cannot hold a blank
    if not is_usable or _is_log_configured(environ):
        return ""
    return f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"


def _is_log_configured(environ: Mapping[str, str]) -> bool:
    """Whether the environment, or a file in Spark's folder of settings, configures Spark's log. Also the folder of an
    installed PySpark has one, if somebody made it."""
    if environ.get("LOG4J_CONFIGURATION_FILE") or any("log4j" in environ.get(name, "") for name in _OF_JAVA):
        return True
    spec = find_spec("pyspark")
    folder = _settings_folder(environ, str(Path(spec.origin).parent) if spec and spec.origin else None)
    has_file = folder is not None and any(one.suffix != ".template" for one in folder.glob("log4j2*"))
    return has_file or "log4j" in _defaults(folder)


def settings_for(
    master: str,
    *,
    memory: str | None = None,
    optimize_for_startup: bool = False,
    java_home: Path | None = None,
    log: str = "",
) -> dict[str, str]:
    """The settings with which a session is created.

    Only for a local master: its shuffle partitions, its loopback addresses, its JVM's options, the quick checkpoint
    files of a local disk, no web pages. `optimize_for_startup` limits the JVM to its first compiler, which suits tests
    and short jobs. `java_home` is the Java that will run; its class archive is used if there is one. `log` is the JVM
    option that configures Spark's log.
    """
    settings = {} if memory is None else {"spark.driver.memory": memory}
    if not is_local(master):
        return settings
    of_archive = "" if java_home is None else archive_options(java_home)
    of_compiler = "-XX:TieredStopAtLevel=1" if optimize_for_startup else ""
    java_options = " ".join(filter(None, ("-XX:+UseSerialGC", STACK, of_compiler, log, of_archive)))
    return {
        "spark.driver.memory": DEFAULT_MEMORY,
        **settings,
        **COMMON_SETTINGS,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(_cores(master)),
        "spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER,
        "spark.driver.extraJavaOptions": java_options,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }


def planning_environment(master: str, conf: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the processes that plan reads, beyond what they inherit: one thread for numpy.

    Spark gives its tasks OMP_NUM_THREADS, and the processes that plan reads nothing. Several are started for each read,
    and in each of them numpy would start a thread for every core, which does nothing. Only for a local master, and
    unless a number is set.
    """
    is_set = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"} & environ.keys() or OF_EXECUTORS in conf
    return {} if is_set or not is_local(master) else {"OMP_NUM_THREADS": "1"}


def _cores(master: str) -> int:
    matched = re.match(r"local\[(\d+)", master)
    if master == "local":
        return 1
    return int(matched[1]) if matched else os.cpu_count() or 2


def parallelism_of(default: int, conf: Mapping[str, str]) -> int:
    """How many tasks a session can run at once: Spark's default parallelism, or more where its settings name more
    cores than executors have registered yet."""
    numbers = {
        name: int(conf[name])
        for name in ("spark.executor.instances", "spark.executor.cores", "spark.cores.max")
        if conf.get(name, "").isdigit()
    }
    of_executors = numbers.get("spark.executor.instances", 0) * numbers.get("spark.executor.cores", 1)
    return max(default, of_executors, numbers.get("spark.cores.max", 0), 1)
