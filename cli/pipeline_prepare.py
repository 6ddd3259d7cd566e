"""`pocketmq pipeline prepare`: half a minute once, and every later session starts some seconds sooner.

A session of its own does what jobs do, and its JVM writes down at its end which classes it had loaded. Where the file
stands and how a session comes by it: `pocketmq.pipeline.session.class_archive`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import click
from pocketmq.pipeline.errors import PipelineError
from pocketmq.pipeline.session.class_archive import archive_path

_LONGEST_SECONDS: Final = 300
_ROWS: Final = 1000


def make_archive(java_home: Path) -> Path:
    """Make the archive, in place of one there was. `PipelineError` where the Java makes none."""
    path = archive_path(java_home)
    if " " in str(path):
        raise PipelineError(f"{path.parent} has a blank in its name, which no option of a JVM may have")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        program = f"from pocketmq.cli.pipeline_prepare import rehearse; rehearse({str(made)!r})"
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
    from pocketmq.pipeline.session.session import pocketmq_session, settings_for
    from pocketmq.testing import EmbeddedServer

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
    from pocketmq.pipeline.jobs.run import check_extra, mistakes_told

    with mistakes_told():
        check_extra()
        from pocketmq.pipeline.session.session import find_java

        click.echo(f"Made {make_archive(find_java())}.")


if __name__ == "__main__":
    main()
