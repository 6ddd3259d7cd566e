"""`pocketmq store`: look at a store that no server has open. `check` says whether it is whole, `show` what is in it.

Nothing is changed on disk. Exit code 0: whole; 1: damaged; 2: no store there, or a server has it open.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from pocketmq.store.errors import StoreError

from .mistakes import FAILED, printable, refuse
from .output import echo_json, json_option, table
from .times import local_time

if TYPE_CHECKING:
    from pocketmq.store.at_rest.contents import StoredQueue
    from pocketmq.store.at_rest.findings import Report


@click.group("store")
def store_command() -> None:
    """Look at the files of a store that no server has open."""


def _of_store(command: Callable[..., None]) -> Callable[..., None]:
    """The parameters of both commands."""
    folder = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
    commit_log = click.option(
        "--commit-log",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Where storePathCommitLog puts the log, if not in DIR/commitlog.",
    )
    return folder(commit_log(json_option(command)))


@store_command.command()
@_of_store
def check(*, folder: Path, commit_log: Path | None, as_json: bool) -> None:
    """Read the whole store in DIR and say what is wrong, where, and what a start would do about it.

    Changes nothing. Exit code 1 on damage.
    """
    import msgspec
    from pocketmq.store.at_rest.check import check_store
    from rich.console import Console

    try:
        with Console(stderr=True).status("reading the log") as status:
            report = check_store(
                folder,
                lambda position: status.update(f"log read up to {position >> 20} MiB"),
                commit_log=commit_log,
            )
    except (StoreError, OSError) as error:
        refuse(error)
    if as_json:
        echo_json({"damaged": report.damaged, **msgspec.to_builtins(report)})
    else:
        _print_report(report)
    sys.exit(FAILED if report.damaged else 0)


def _print_report(report: "Report") -> None:
    click.echo(f"store       {report.store}")
    click.echo(f"last stop   {'clean' if report.clean else 'not clean'}")
    click.echo(
        f"log         {report.log_files} files, positions {report.log_start} to {report.log_end}, "
        f"{report.records} records, {local_time(report.first_store_time_ms)} to {local_time(report.last_store_time_ms)}"
    )
    click.echo(f"queues      {report.queues}, {report.units} units")
    click.echo(f"index       {report.index_files} files, {report.index_entries} entries")
    for finding in report.findings:
        click.echo(f"{finding.severity}: {finding.place}: {finding.what}")
        if finding.start:
            click.echo(f"    a start: {finding.start}")
    click.echo("damaged" if report.damaged else "whole")


@store_command.command()
@click.option("--topic", help="Show the messages of this topic, not the list of queues.")
@click.option("--queue", "queue_id", type=click.IntRange(0), help="Only this queue of the topic.")
@click.option(
    "-c",
    "--count",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="How many of each queue's newest messages.",
)
@_of_store
def show(
    *,
    folder: Path,
    commit_log: Path | None,
    topic: str | None,
    queue_id: int | None,
    count: int,
    as_json: bool,
) -> None:
    """List the topics and queues in DIR, or the newest messages of one topic. Changes nothing."""
    from pocketmq.store.at_rest.contents import StoreContents

    try:
        contents = StoreContents(folder, commit_log=commit_log)
        queues = contents.queues(topic)
        if topic is not None and queue_id is not None:
            queues = [queue for queue in queues if queue.queue_id == queue_id]
        if topic is not None and not queues:
            raise StoreError(f"{folder} has no queue of topic {topic}")
        if topic is None:
            _print_queues(queues, as_json=as_json)
        else:
            for queue in queues:
                _print_messages(contents.newest(queue, count), as_json=as_json)
    except (StoreError, OSError) as error:
        refuse(error)


def _print_queues(queues: "list[StoredQueue]", *, as_json: bool) -> None:
    if as_json:
        for queue in queues:
            echo_json(queue)
        return
    rows = [
        (one.topic, one.queue_id, one.min_offset, one.max_offset, local_time(one.newest_store_time_ms))
        for one in queues
    ]
    click.echo(table(("topic", "queue", "min offset", "max offset", "newest message stored"), rows))


def _print_messages(messages: list[Any], *, as_json: bool) -> None:
    for message in messages:
        if as_json:
            echo_json(message)
            continue
        names = " ".join(
            f"{name}={printable(message.properties[name])}"
            for name in ("TAGS", "KEYS")
            if name in message.properties
        )
        body = printable(message.body[:60].decode("utf-8", "replace"))
        click.echo(
            f"queue {message.queue_id} offset {message.queue_offset} position {message.position} "
            f"{message.size} bytes {local_time(message.store_time_ms)} {names} {body}"
        )
