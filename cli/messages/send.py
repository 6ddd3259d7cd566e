"""`pocketmq send`: messages from a terminal, a file or a pipe, with every setting a message can have.

Messages are sent one after the other, so that lines keep their order. Each result is printed on a line of its own.
"""

import functools
import os
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from pocketmq.client import Message, Producer, SendResult, SendStatus, select_by_hash
from pocketmq.console.values import Sent

from ..inspect.cluster_names import complete_topics
from ..options import client_options, run_command
from ..times import epoch_ms
from .input import bodies_of

MAX_DELAY_MS: Final = 10 * 365 * 24 * 3_600_000
"""Ten years; brokers accept three days unless they are configured otherwise."""


def property_of(text: str) -> tuple[str, str]:
    """NAME=VALUE as a pair. BadParameter for anything else."""
    name, sign, value = text.partition("=")
    if not name or not sign or not value:
        raise click.BadParameter(f"{text!r} must be NAME=VALUE")
    return name, value


def time_of(text: str) -> datetime:
    """Epoch ms or an ISO time. BadParameter for anything else."""
    moment_ms = epoch_ms(text)
    if moment_ms is None:
        raise click.BadParameter(f"{text!r} must be epoch milliseconds or a time as 2026-01-31T12:00:00")
    try:
        return datetime.fromtimestamp(moment_ms / 1000, UTC)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(f"{moment_ms} ms is beyond the year 9999") from error


@click.command()
@click.argument("topic", shell_complete=complete_topics)
@click.argument("bodies", metavar="[BODY]...", nargs=-1)
@click.option("--tags", "--tag", default="", help="The messages' tag.")
@click.option("--keys", "--key", multiple=True, help="A key, or several separated by spaces; repeatable.")
@click.option(
    "-p",
    "--property",
    "properties",
    type=property_of,
    metavar="NAME=VALUE",
    multiple=True,
    help="A property; repeatable.",
)
@click.option(
    "--flag", type=int, default=0, help="The flag: a number that the message carries for its users."
)
@click.option("--delay-level", type=click.IntRange(0), default=0, help="Deliver after this delay level.")
@click.option(
    "--delay-ms", type=click.IntRange(0, MAX_DELAY_MS), default=0, help="Deliver after this many ms (5.x)."
)
@click.option(
    "--deliver-at", type=time_of, metavar="TIME", help="Deliver at this time (5.x): epoch ms or ISO."
)
@click.option("--queue", "queue_id", type=click.IntRange(0), help="The queue.  [default: round robin]")
@click.option(
    "--order-key", help="Send all messages to one queue, chosen by this text's hash: they keep their order."
)
@click.option(
    "--one-way", is_flag=True, help="Do not wait for an answer, so whether it was stored stays unknown."
)
@click.option(
    "-f",
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="Send each line of FILE; - is standard input.",
)
@click.option("--whole", is_flag=True, help="Send all of FILE or of standard input as one message.")
@click.option("-g", "--group", default="pocketmq-send", show_default=True, help="The producer group.")
@click.option("--timeout-ms", type=click.IntRange(1), default=3000, show_default=True)
@click.option("-q", "--quiet", is_flag=True, help="Print no results.")
@click.option("--json", "as_json", is_flag=True, help="Print each result as one JSON object a line.")
@client_options
def send(
    *,
    topic: str,
    bodies: tuple[str, ...],
    tags: str,
    keys: tuple[str, ...],
    properties: tuple[tuple[str, str], ...],
    flag: int,
    delay_level: int,
    delay_ms: int,
    deliver_at: datetime | None,
    queue_id: int | None,
    order_key: str | None,
    one_way: bool,
    file: Path | None,
    whole: bool,
    group: str,
    timeout_ms: int,
    quiet: bool,
    as_json: bool,
    client: dict[str, Any],
) -> None:
    """Send messages to TOPIC: each BODY, or each line of FILE or standard input.

    Empty lines are skipped.
    """
    if bodies and (file is not None or whole):
        raise click.UsageError("give BODY or --file, not both")
    if queue_id is not None and order_key is not None:
        raise click.UsageError("give --queue or --order-key, not both")
    if (delay_level > 0) + (delay_ms > 0) + (deliver_at is not None) > 1:
        raise click.UsageError("give one of --delay-level, --delay-ms and --deliver-at")
    message = functools.partial(
        Message,
        topic,
        tags=tags,
        keys=keys,
        properties=dict(properties),
        flag=flag,
        delay_level=delay_level,
        delay=timedelta(milliseconds=delay_ms),
        deliver_at=deliver_at,
    )
    # How to choose the queue: the keywords of a send.
    where: dict[str, Any] = {"queue_id": queue_id}
    if order_key is not None:
        where = {"selector": select_by_hash, "arg": order_key}
    show = None if quiet else _json if as_json else _line

    async def send_all() -> None:
        source = _each(bodies) if bodies else bodies_of(file, whole=whole)
        async with Producer(group, **client, send_msg_timeout=timeout_ms) as producer:
            async for body in source:
                if one_way:
                    await producer.send_oneway(message(body), **where)
                    continue
                result = await producer.send(message(body), **where)
                if show is not None:
                    click.echo(show(result))

    run_command(send_all())


async def _each(bodies: Sequence[str]) -> AsyncIterator[bytes]:
    for body in bodies:
        yield os.fsencode(body)  # as it was typed, UTF-8 or not


def _line(result: SendResult) -> str:
    status = "" if result.status is SendStatus.SEND_OK else f" {result.status.value}"
    recall = "" if result.recall_handle is None else f" recall handle {result.recall_handle}"
    return f"{result.message_id} queue {result.queue.queue_id} offset {result.queue_offset}{status}{recall}"


def _json(result: SendResult) -> str:
    sent = Sent(
        message_id=result.message_id,
        topic=result.queue.topic,
        broker_name=result.queue.broker_name,
        queue_id=result.queue.queue_id,
        queue_offset=result.queue_offset,
        status=result.status.value,
        recall_handle=result.recall_handle,
    )
    return msgspec.json.encode(sent).decode()
