"""Sessions that start sooner: what a JVM has loaded once is kept in a file, and the next one maps it.

    pocketmq pipeline prepare        once for each Java and environment; half a minute, and some 140 MB on disk

Spark is 10,000 classes, and loading them is a third of the time from nothing to the first rows. `session.py` names the
archive to the JVM where there is one. It can only help: a JVM whose program files are not those the archive was made
of starts as if there were none. The folder is `$XDG_CACHE_HOME/pocketmq` (`~/.cache/pocketmq`). Next: `session.py`.
"""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click

from .errors import PipelineError

NO_COMPLAINTS: Final = "-Xlog:disable -Xlog:all=error:stderr"
"""Where the archive does not fit, a JVM says so on the standard output, which is the job's."""
_LONGEST_SECONDS: Final = 300
_ROWS: Final = 1000


def archive_path(java_home: Path) -> Path:
    """Where the archive for this PySpark on that Java stands, or would."""
    cache = os.environ.get("XDG_CACHE_HOME")
    folder = Path(cache) if cache and Path(cache).is_absolute() else Path.home() / ".cache"
    spark = f"{version('pyspark')}-{_installation()}"
    return folder / "pocketmq" / f"spark-{spark}-java-{_java_release(java_home)}.jsa"


def _installation() -> str:
    """A short name for where PySpark is installed: an archive is good for files of that place alone."""
    spec = find_spec("pyspark")
    return hashlib.blake2b(str(spec and spec.origin).encode(), digest_size=4).hexdigest()


def _java_release(java_home: Path) -> str:
    """What the Java calls itself, as a part of a file name."""
    try:
        told = (java_home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown"
    matched = re.search(r'^JAVA_RUNTIME_VERSION="(.*)"|^JAVA_VERSION="(.*)"', told, re.MULTILINE)
    return re.sub(r"[^\w.+-]", "_", matched[1] or matched[2]) if matched else "unknown"


def archive_options(java_home: Path) -> str:
    """Options for a JVM of that Java: none where there is no archive."""
    path = archive_path(java_home)
    return f"-XX:SharedArchiveFile={path} {NO_COMPLAINTS}" if path.is_file() and " " not in str(path) else ""


def make_archive(java_home: Path) -> Path:
    """Make the archive, in place of one there was. `PipelineError` where the Java makes none."""
    path = archive_path(java_home)
    if " " in str(path):
        raise PipelineError(f"{path.parent} has a blank in its name, which no option of a JVM may have")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        program = f"from {__name__} import rehearse; rehearse({str(made)!r})"
        try:
            # What is awaited is the end of the output, which the JVM shares: it writes the archive as it ends.
            ran = subprocess.run(
                [sys.executable, "-c", program],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_LONGEST_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise PipelineError(f"Spark did not end within {_LONGEST_SECONDS} s") from error
        if not made.is_file():
            last = (ran.stdout.strip().splitlines() or ["it said nothing"])[-1]
            raise PipelineError(f"the Java of {java_home} wrote no class archive: {last}")
        made.replace(path)
    return path


def rehearse(archive: str) -> None:
    """What jobs do, in a JVM that writes down at its end which classes it had loaded."""
    from pocketmq.testing import EmbeddedServer

    from .session import pocketmq_session, settings_for

    options = settings_for("local[2]")["spark.driver.extraJavaOptions"]
    options = f"{options} -XX:ArchiveClassesAtExit={archive}"
    with tempfile.TemporaryDirectory() as folder, EmbeddedServer(store=folder) as server:
        spark = pocketmq_session(
            "prepare", master="local[2]", settings={"spark.driver.extraJavaOptions": options}
        )
        place = {"nameServer": server.namesrv_addr}
        rows = spark.range(_ROWS).selectExpr("cast(id as binary) body", "'A' tags", "concat('k', id) keys")
        rows.write.format("rocketmq").mode("append").options(**place, topic="Rehearsal").save()
        read = spark.read.format("rocketmq").options(**place, subscribe="Rehearsal").load().cache()
        read.groupBy("queueId").agg({"queueOffset": "max"}).orderBy("queueId").collect()
        read.write.parquet(f"{folder}/parquet")
        stream = spark.readStream.format("rocketmq").options(
            **place, subscribe="Rehearsal", startingOffsets="earliest"
        )
        query = stream.load().writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint")
        query.trigger(availableNow=True).start().awaitTermination(60)
        spark.stop()


@click.command()
def main() -> None:
    """Make later sessions start sooner: keep what a JVM loads for Spark."""
    from .session import find_java

    try:
        click.echo(f"Made {make_archive(find_java())}.")
    except (PipelineError, OSError) as error:
        click.echo(f"pocketmq: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
