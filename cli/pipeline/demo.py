"""`pocketmq pipeline demo`: from a running broker to a report for the browser, in about half a minute.

A broker records a journal while three consumers join and leave one group:

    0  a producer, consumers a and b     1/4  c joins     1/2  b leaves     3/4  a leaves, c is alone

Then Spark reads the journal and writes the behaviour report. With `-n ADDR` and `--journal DIR`, the traffic goes to a
running broker that records to that folder.
"""

import asyncio
import contextlib
import itertools
import tempfile
from pathlib import Path
from typing import Final

import click
from pocketmq.client import MessageExt, Producer, PushConsumer, RetryLater

from ..options import run_command

TOPIC: Final = "PipelineDemo"
GROUP: Final = "demo-consumers"
_PAUSE_SECONDS: Final = 0.005


@click.command()
@click.option("--html", "html_file", default="pipeline-report.html", show_default=True, help="The report.")
@click.option("--seconds", default=12.0, show_default=True, help="How long the consumers run.")
@click.option("-n", "--namesrv", "namesrv_addr", metavar="ADDR", help="A running broker, with --journal.")
@click.option("--journal", metavar="DIR", help="The folder that this broker records to.")
def main(*, html_file: str, seconds: float, namesrv_addr: str | None, journal: str | None) -> None:
    """From a running broker to a report for the browser."""
    from pocketmq.pipeline.jobs.answers.on_engine import run_on_engine
    from pocketmq.pipeline.jobs.behaviour.job import build
    from pocketmq.testing import EmbeddedServer

    if (namesrv_addr is None) != (journal is None):
        raise click.UsageError("give both --namesrv and --journal, or neither")
    with tempfile.TemporaryDirectory(prefix="pocketmq-demo-") as folder:
        recorded = journal or str(Path(folder) / "journal")
        if namesrv_addr is not None:
            click.echo(f"{GROUP} consume at {namesrv_addr} for {seconds:g} s.")
            run_command(drive(namesrv_addr, seconds))
        else:
            with EmbeddedServer(journal=recorded) as server:
                click.echo(f"A broker is up and records; {GROUP} consume for {seconds:g} s.")
                run_command(drive(server.namesrv_addr, seconds))
        click.echo("Spark reads the journal.")
        run_on_engine(
            "demo",
            lambda engine: build(engine, [recorded]),
            engine="spark",
            master="local[2]",
            memory="1g",
            json_file=None,
            parquet_folder=None,
            html_file=html_file,
            quiet=False,
            fails_on_findings=False,
        )
    click.echo(f"\nThe report: {Path(html_file).resolve()}")


async def drive(namesrv_addr: str, seconds: float) -> None:
    """Send and consume for `seconds`."""
    step = seconds / 4
    async with Producer("demo-producers", namesrv_addr=namesrv_addr) as producer:
        await producer.send(TOPIC, b"first")
        sending = asyncio.create_task(_send(producer))
        try:
            async with asyncio.TaskGroup() as group:
                for name, joins, leaves in (("a", 0, 3), ("b", 0, 2), ("c", 1, 4)):
                    group.create_task(_stay(namesrv_addr, name, joins * step, leaves * step))
        finally:
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending


async def _stay(namesrv_addr: str, name: str, joins: float, leaves: float) -> None:
    """One consumer: joins and leaves at these seconds after the beginning."""
    await asyncio.sleep(joins)
    subscription = {TOPIC: "*"}
    async with PushConsumer(
        GROUP,
        _on_message,
        namesrv_addr=namesrv_addr,
        subscription=subscription,
        instance_name=f"consumer-{name}",
    ):
        await asyncio.sleep(leaves - joins)


async def _send(producer: Producer) -> None:
    for number in itertools.count():
        await producer.send(TOPIC, f"message {number}".encode(), tags="demo", keys=f"k{number}")
        await asyncio.sleep(_PAUSE_SECONDS)


async def _on_message(message: MessageExt) -> None:
    """Every hundredth message fails once, so that the report shows a retry."""
    if message.keys.endswith("00") and not message.reconsume_times:
        raise RetryLater(delay_level=1)
