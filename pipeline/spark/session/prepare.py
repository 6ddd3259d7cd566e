"""Makes the class archive: the work behind `pocketmq pipeline prepare`.

A session of its own does what jobs do against a running broker, in a child process. Its JVM writes the classes it has
loaded to a file when it ends. Where that file lies and how a session finds it: `class_archive.py`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from ...errors import PipelineError
from .class_archive import archive_path
from .session import pocketmq_session
from .settings import settings_for

_TIMEOUT_SECONDS: Final = 300
_ROWS: Final = 1000


def make_archive(java_home: Path, namesrv_addr: str) -> Path:
    """Make the archive, or replace the one that exists. `PipelineError` if this Java writes none."""
    path = archive_path(java_home)
    if " " in str(path):
        raise PipelineError(f"{path.parent} must have no blank in its name: a JVM option cannot name it")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        program = f"from {__name__} import rehearse; rehearse({str(made)!r}, {namesrv_addr!r}, {folder!r})"
        try:
            # `run` returns at the end of the output. The JVM shares it, and writes the archive as it ends.
            ran = subprocess.run(
                [sys.executable, "-c", program],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise PipelineError(f"Spark did not end within {_TIMEOUT_SECONDS} s") from error
        if not made.is_file():
            last_line = (ran.stdout.strip().splitlines() or ["it printed nothing"])[-1]
            raise PipelineError(f"the Java of {java_home} wrote no class archive: {last_line}")
        made.replace(path)
    return path


def rehearse(archive: str, namesrv_addr: str, folder: str) -> None:
    """Write, read and stream a topic, in a JVM that writes the classes it has loaded to `archive` when it ends."""
    options = settings_for("local[2]")["spark.driver.extraJavaOptions"]
    options = f"{options} -XX:ArchiveClassesAtExit={archive}"
    spark = pocketmq_session(
        "prepare", master="local[2]", settings={"spark.driver.extraJavaOptions": options}
    )
    broker = {"nameServer": namesrv_addr}
    rows = spark.range(_ROWS).selectExpr("cast(id as binary) body", "'A' tags", "concat('k', id) keys")
    rows.write.format("rocketmq").mode("append").options(**broker, topic="Rehearsal").save()
    read = spark.read.format("rocketmq").options(**broker, subscribe="Rehearsal").load().cache()
    read.groupBy("queueId").agg({"queueOffset": "max"}).orderBy("queueId").collect()
    read.write.parquet(f"{folder}/parquet")
    stream = spark.readStream.format("rocketmq").options(
        **broker, subscribe="Rehearsal", startingOffsets="earliest"
    )
    query = stream.load().writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint")
    query.trigger(availableNow=True).start().awaitTermination(60)
    spark.stop()
