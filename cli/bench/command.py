"""`pocketmq bench`: messages a second of a broker and this client, and how long each message took.

producer     sends: one after the other in each of --tasks, or --in-flight futures at once
consumer     reads a topic's backlog as a new group; with --follow for --duration
end-to-end   both in one process: from the call of send to the listener
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

import click
from pocketmq.broker.process import loop_factory
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..mistakes import FAILED, NumberRange
from ..options import client_options, run_command
from ..output import echo_json, json_option
from .runs import Plan, Run, consume, end_to_end, produce

PERCENTILES: Final = (50, 90, 99, 99.9)
FIGURES: Final = (
    *("messages", "failed", "seconds", "per_second", "cpu_us_per_message"),
    *("rss_begin_bytes", "rss_end_bytes"),
)
MODES: Final[dict[str, Callable[[Plan, Run], Awaitable[None]]]] = {
    "producer": produce,
    "consumer": consume,
    "end-to-end": end_to_end,
}


@click.command()
@click.argument("mode", type=click.Choice(tuple(MODES)), default="producer")
@click.option("-t", "--topic", default="BenchLoad", show_default=True)
@click.option(
    "-s", "--size", type=click.IntRange(8, 4_194_304), default=128, show_default=True, help="Body bytes."
)
@click.option(
    "-w", "--tasks", type=click.IntRange(1, 10_000), default=64, show_default=True, help="Tasks that send."
)
@click.option(
    "-i",
    "--in-flight",
    type=click.IntRange(1, 10_000),
    default=1,
    show_default=True,
    help="Sends under way in each task.",
)
@click.option(
    "-b", "--batch", type=click.IntRange(1, 10_000), default=1, show_default=True, help="Messages in a send."
)
@click.option(
    "-r",
    "--rate",
    type=NumberRange(0),
    default=0,
    help="Messages a second, all tasks together.  [default: no limit; end-to-end: 1000]",
)
@click.option(
    "-d",
    "--duration",
    "seconds",
    type=NumberRange(0.1, 86_400),
    default=5.0,
    show_default=True,
    help="Seconds to run; for a consumer's backlog, the most.",
)
@click.option(
    "--warm-up",
    type=NumberRange(0, 3600),
    default=0.5,
    show_default=True,
    help="Seconds of sending before measuring begins.",
)
@click.option(
    "--follow", is_flag=True, help="consumer: run for --duration instead of to the end of the backlog."
)
@click.option("-g", "--group", default="", help="The consumer group.  [default: a new one]")
@json_option
@client_options
def bench(*, mode: str, as_json: bool, rate: float, **options: Any) -> None:
    """Measure the messages a second and the latencies of a broker.

    MODE is what is measured: sending, consuming, or both from end to end.
    """
    if mode == "end-to-end" and not rate:
        rate = 1000.0
    size = options.pop("size")
    plan = Plan(body_bytes=size, rate=rate, **options)
    run_command(_bench(mode, plan, as_json=as_json), loop_factory=loop_factory())


async def _bench(mode: str, plan: Plan, *, as_json: bool) -> None:
    run = Run()
    console = Console(stderr=True)
    bar = Progress(
        TextColumn(mode),
        BarColumn(),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        showing = asyncio.create_task(_show(bar, run))
        try:
            await MODES[mode](plan, run)
        finally:
            showing.cancel()
    if run.first_error:
        click.echo(f"pocketmq: {run.failed} sends failed, the first: {run.first_error}", err=True)
    if as_json:
        echo_json(as_object(mode, plan, run))
    else:
        click.echo(_text(mode, plan, run))
    if run.failed or not run.messages:
        sys.exit(FAILED)


async def _show(bar: Progress, run: Run) -> None:
    task = bar.add_task("", total=1.0, text="")
    while True:
        bar.update(task, completed=min(run.share, 1.0), text=f"{run.messages} messages")
        await asyncio.sleep(0.2)


def as_object(mode: str, plan: Plan, run: Run) -> dict[str, Any]:
    """The result for programs: rates per second, latencies in ms, CPU of this process in us per message."""
    return {
        "mode": mode,
        **{
            name: getattr(plan, name)
            for name in ("topic", "body_bytes", "tasks", "in_flight", "batch", "rate")
        },
        **{name: getattr(run, name) for name in FIGURES},
        "latencies_ms": {
            name: {
                **{f"p{percent:g}": one.percentile_ms(percent) for percent in PERCENTILES},
                "max": one.max_ms,
            }
            for name, one in run.latencies.items()
        },
    }


def _text(mode: str, plan: Plan, run: Run) -> str:
    how = f", {plan.tasks} tasks x {plan.in_flight} under way, {plan.body_bytes} bytes"
    if plan.batch > 1:
        how += f", batches of {plan.batch}"
    lines = [
        f"{mode}{'' if mode == 'consumer' else how}",
        f"  {run.messages} messages in {run.seconds:.2f} s: {run.per_second:.0f} messages/s, "
        f"{run.failed} failed, {run.cpu_us_per_message:.1f} us CPU a message",
    ]
    for name, one in run.latencies.items():
        if one.count == 1:
            lines.append(f"  {name.replace('_', ' ')} after {one.max_ms:.1f} ms")
        elif one.count:
            percentiles = ", ".join(
                f"p{percent:g} {one.percentile_ms(percent):.3f} ms" for percent in PERCENTILES
            )
            lines.append(f"  {name.replace('_', ' ')}: {percentiles}, max {one.max_ms:.3f} ms")
    return "\n".join(lines)
