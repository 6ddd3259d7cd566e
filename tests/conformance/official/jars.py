"""The official jars: fetched once by Maven into a cache folder, and the Java command lines over them.

    $POCKETMQ_PEERS (default ~/.cache/pocketmq-peers)/49/lib/*.jar     and 55/lib

Tests name two lines: "4.9" and "5.5". A filled folder is not fetched again.
"""

import fcntl
import functools
import os
import re
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
VERSIONS = ("4.9", "5.5")
SERVER_VERSION = {"4.9": "4.9.7", "5.5": "5.5.0"}
CLIENT_VERSION = {"4.9": "4.9.8", "5.5": "5.5.0"}

# Small and quick to start: one compiler tier, a collector without threads, no shared statistics file.
QUICK = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Dfile.encoding=UTF-8",
)
# The packages that the official start scripts open, for the Java versions that need it.
OPENED = ("java.nio", "sun.nio.ch", "jdk.internal.ref", "java.lang", "java.util")
OPENS = (
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
)

# One plain log file in the program's home and no log on stdout: stdout is for what the program prints.
LOG_SETTINGS = """<configuration>
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>${user.home}/rocketmq.log</file>
    <encoder><pattern>%d %p %t %c{0} - %m%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="file"/></root>
</configuration>
"""


class PeersUnavailable(RuntimeError):
    """Java, Maven or the jars are missing; the text suits a skip line."""


@dataclass(frozen=True)
class JavaProgram:
    """What to run: a main class with the jars of one version, and folders after them on the class path."""

    version: str
    main: str
    extra_classpath: tuple[Path, ...] = ()

    def command(self, home: Path, options: Sequence[str], arguments: Sequence[str]) -> list[str]:
        """home becomes the program's user.home and rocketmq.home.dir: it writes nowhere else."""
        classpath = [settings_jar(self.version), *jars(self.version), *self.extra_classpath]
        places = (
            f"-Duser.home={home}",
            f"-Drocketmq.home.dir={home}",
            f"-Drocketmq.client.logRoot={home}/logs",
        )
        joined = os.pathsep.join(str(path) for path in classpath)
        return ["java", *QUICK, *OPENS, *places, *options, "-cp", joined, self.main, *arguments]


def why_unavailable() -> str | None:
    """None if official programs can run, else the reason in one line."""
    missing = [program for program in ("java", "javac", "mvn") if shutil.which(program) is None]
    if missing:
        return f"not on PATH: {', '.join(missing)}"
    version = java_version()
    return None if version >= 11 else f"Java 11 or newer is needed, found {version}"


@functools.cache
def java_version() -> int:
    """The feature number of the java on PATH; 8 for the old 1.8 spelling."""
    finished = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    matched = re.search(r'version "(?:1\.)?(\d+)', finished.stderr)
    return int(matched.group(1)) if matched else 0


def cache() -> Path:
    return Path(os.environ.get("POCKETMQ_PEERS") or Path.home() / ".cache" / "pocketmq-peers").expanduser()


@functools.cache
def jars(version: str) -> tuple[Path, ...]:
    """All jars of "4.9" or "5.5" in a fixed order; fetches missing ones."""
    short = version.replace(".", "")
    lib = cache() / short / "lib"
    server_jar = lib / f"rocketmq-broker-{SERVER_VERSION[version]}.jar"
    if not server_jar.exists():
        fetch(short, lib)
    found = sorted(lib.glob("*.jar"))
    if server_jar not in found:
        raise PeersUnavailable(f"{server_jar} is missing after Maven ran")
    return tuple(found)


def fetch(short: str, lib: Path) -> None:
    """Maven copies all dependencies of pom<short>.xml to lib; a second process waits for the first."""
    lib.parent.mkdir(parents=True, exist_ok=True)
    with (lib.parent / "fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if lib.exists() and any(lib.glob("rocketmq-broker-*.jar")):
            return
        unfinished = lib.with_name("lib.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        goal = ("dependency:copy-dependencies", f"-DoutputDirectory={unfinished}", "-DincludeScope=runtime")
        finished = subprocess.run(
            ["mvn", "--quiet", "--batch-mode", "--file", str(HERE / f"pom{short}.xml"), *goal],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        if finished.returncode != 0:
            raise PeersUnavailable(
                f"Maven could not fetch RocketMQ {short}: {(finished.stdout + finished.stderr)[-800:]}"
            )
        unfinished.rename(lib)


@functools.cache
def settings_jar(version: str) -> Path:
    """The log settings as a jar before all others; 5.x looks for rmq.logback.xml, 4.9 clients for
    logback.xml.
    """
    path = cache() / version.replace(".", "") / "settings.jar"
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"settings.{os.getpid()}.{threading.get_ident()}.jar")
    with zipfile.ZipFile(unfinished, "w") as archive:
        for name in ("rmq.logback.xml", "logback.xml"):
            archive.writestr(name, LOG_SETTINGS)
    unfinished.replace(path)
    return path


def prepare_home(home: Path) -> None:
    """The conf folder that 4.9 servers and tools require."""
    conf = home / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    for name in ("logback_namesrv", "logback_broker", "logback_tools"):
        (conf / f"{name}.xml").write_text(LOG_SETTINGS, encoding="utf-8")
    (conf / "tools.yml").touch()
