"""Spark's own cluster manager on this machine: a master, and workers of one core each."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pocketmq.pipeline.spark.session.java import find_java

from ports import fixed_port
from spark.drivers import SPARK_HOME, driver

LOGGING = (
    # Quiet sessions of this package log nothing; a daemon's "ready" is an INFO line.
    "rootLogger.level = info\nrootLogger.appenderRef.stdout.ref = console\nappender.console.type = Console\n"
    "appender.console.name = console\nappender.console.layout.type = PatternLayout\n"
    "appender.console.layout.pattern = %p %c{1}: %m%n\n"
)

QUICK_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
DEFAULTS = {
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": QUICK_START,
}
"""What spark-defaults.conf says on this cluster: small executors, and JVMs that start with less work."""


def environment(python: Path | None = None) -> dict[str, str]:
    """The environment in which drivers and workers use `python`: by default this one, with this Python's own paths;
    another one without them."""
    kept = dict(os.environ)
    if python is not None:
        kept = {name: text for name, text in kept.items() if not name.startswith(("PYTHON", "PYSPARK"))}
    program = str(python or sys.executable)
    return kept | {
        "JAVA_HOME": str(find_java()),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": program,
        "PYSPARK_DRIVER_PYTHON": program,
    }


class Standalone:
    """A cluster that runs."""

    def __init__(self, address: str, folder: Path, env: Mapping[str, str], workers: list[int]) -> None:
        self.address = address
        """`host:port` of the master."""
        self.env = {**env, "SPARK_CONF_DIR": str(folder / "conf")}
        """The environment of its drivers."""
        self._master_log = folder / "master.out"
        self.workers = workers
        """The process ids of its workers."""

    @property
    def url(self) -> str:
        return f"spark://{self.address}"

    def applications(self) -> list[str]:
        """The names of the applications that ran or run, oldest first."""
        return re.findall(r"Registered app (.+) with ID", self._master_log.read_text(errors="replace"))

    def executors(self) -> list[int]:
        """The process ids of the executors: the children of the workers."""
        found = []
        for status in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = status.read_text().rpartition(")")[2].split()
                if int(fields[1]) in self.workers and fields[0] != "Z":
                    found.append(int(status.parent.name))
        return sorted(found)


@contextlib.contextmanager
def spark_daemon(argv: list[str], env: Mapping[str, str], log: Path, ready: str) -> Iterator[int]:
    """Starts a master or worker of Spark's own cluster manager, and waits until it is ready. Gives its process id."""
    program = str(SPARK_HOME / "bin" / "spark-class")
    with driver(log, [program, *argv], env) as one:
        one.wait_for(ready)
        yield one.process.pid


@contextlib.contextmanager
def standalone_cluster(folder: Path, env: Mapping[str, str], *, workers: int = 2) -> Iterator[Standalone]:
    """A master and workers; `env` is that of the executors too. Logs lie in `folder`."""
    (folder / "log4j2.properties").write_text(LOGGING)
    (folder / "conf").mkdir()
    defaults = "".join(f"{name} {text}\n" for name, text in DEFAULTS.items())
    (folder / "conf" / "spark-defaults.conf").write_text(defaults)
    daemon_env = {**env, "SPARK_CONF_DIR": str(folder), "SPARK_DAEMON_JAVA_OPTS": QUICK_START}
    address = f"127.0.0.1:{fixed_port()}"
    host, port = address.split(":")
    deploy = "org.apache.spark.deploy"
    master = [f"{deploy}.master.Master", "--host", host, "--port", port, "--webui-port", "0"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(spark_daemon(master, daemon_env, folder / "master.out", "state: ALIVE"))
        pids = []
        for number in range(workers):
            words = ["--host", host, "--webui-port", "0", "--cores", "1", "--memory", "700m"]
            words += ["-d", str(folder / f"work{number}"), f"spark://{address}"]
            log = folder / f"worker{number}.out"
            argv = [f"{deploy}.worker.Worker", *words]
            pids.append(stack.enter_context(spark_daemon(argv, daemon_env, log, "Successfully registered")))
        yield Standalone(address, folder, env, pids)
