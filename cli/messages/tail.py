"""`pocketmq tail`: the messages of a topic, printed as they arrive or until the end.

    without a group   every queue is read by offset; nothing is stored
    --group G         as a member of G: the members share the queues, and offsets are committed, so the next tail
                      continues where this one ended. --from counts only for queues without an offset of G

If a broker stops, tail waits for it.
"""

import asyncio
import re
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import click
import msgspec
from pocketmq.client import (
    ClientError,
    ConsumeFromWhere,
    LitePullConsumer,
    MessageExt,
    MessageQueue,
    NotReachable,
    PullConsumer,
    RouteNotFound,
)
from pocketmq.client.admin.calls import TOOLS_GROUP
from pocketmq.client.settings.timestamps import format_timestamp
from pocketmq.console.broker_values import message_value

from ..inspect.cluster_names import complete_groups, complete_topics
from ..mistakes import printable
from ..options import client_options, run_command
from ..times import epoch_ms, local_time


def text_form(message: MessageExt) -> bytes:
    """The body as text, on one line that a terminal only shows; bytes that are not UTF-8 become U+FFFD."""
    body = printable(message.body.decode("utf-8", "replace"))
    return f"{message.topic} queue {message.queue_id} offset {message.queue_offset}: {body}\n".encode()


def body_form(message: MessageExt) -> bytes:
    """The body as it is."""
    return message.body + b"\n"


def full_form(message: MessageExt) -> bytes:
    """All of a message, for people."""
    rows = [
        ("id", message.message_id),
        ("born", f"{local_time(message.born_timestamp)} at {message.born_host}"),
        ("stored", f"{local_time(message.store_timestamp)} at {message.store_host}"),
    ]
    if message.reconsume_times:
        rows.append(("reconsume times", str(message.reconsume_times)))
    if message.flag:
        rows.append(("flag", str(message.flag)))
    rows += sorted(message.properties.items())
    lines = "".join(f"    {printable(name)}: {printable(value or '')}\n" for name, value in rows)
    return text_form(message) + lines.encode("utf-8", "replace")


def json_form(message: MessageExt) -> bytes:
    """All of a message, for programs: that of the HTTP port; `text` is null for a body that is not UTF-8."""
    return msgspec.json.encode(message_value(message.record, message.broker_name, message.body)) + b"\n"


FORMS: Final[dict[str, Callable[[MessageExt], bytes]]] = {
    "text": text_form,
    "body": body_form,
    "full": full_form,
    "json": json_form,
}
"""Value of `--output` -> form."""


WAIT_MS: Final = 10_000
"""How long one pull waits for a message before it asks again."""
AGAIN_SECONDS: Final = 1.0
"""Pause before asking a broker again that could not be reached."""
READ_AHEAD: Final = 1000
"""How many messages may be read ahead of printing."""
_AGO: Final = re.compile(r"(\d+)([smhd])\Z")
_UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Start(msgspec.Struct, frozen=True):
    """Where to begin: `where` is first, last, time (`value` in epoch ms) or offset (`value` the offset)."""

    where: str
    value: int = 0


def start_of(text: str) -> Start:
    """`first`, `last`, an ISO time, how long ago (`10m`), or an offset. BadParameter for anything else."""
    if text in ("first", "last"):
        return Start(text)
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return Start("offset", int(text))
    ago = _AGO.fullmatch(text)
    if ago is not None and len(ago[1]) <= 9:
        return Start("time", max(0, time.time_ns() // 1_000_000 - int(ago[1]) * _UNITS_MS[ago[2]]))
    moment = None if text.isdigit() else epoch_ms(text)
    if moment is None:
        raise click.BadParameter(
            f"{text!r} must be first, last, a time as 2026-01-31T12:00:00, 10m (ago) or an offset"
        )
    return Start("time", moment)


class Printer:
    """Prints messages to standard output, at most `count` of them."""

    def __init__(self, form: Callable[[MessageExt], bytes], count: int | None) -> None:
        self._form = form
        self._left = count

    def show(self, message: MessageExt) -> bool:
        """Print one; whether another is wanted."""
        sys.stdout.buffer.write(self._form(message))
        sys.stdout.buffer.flush()
        if self._left is not None:
            self._left -= 1
        return self._left != 0


@click.command()
@click.argument("topic", shell_complete=complete_topics)
@click.option("--tags", default="*", show_default=True, help="A tag expression: `A || B`.")
@click.option("--sql", help="An SQL92 expression of properties, instead of tags.")
@click.option(
    "--from",
    "start",
    type=start_of,
    metavar="first|last|TIME|AGO|OFFSET",
    default="last",
    show_default=True,
    help="Where to begin: an ISO time, a time ago (10m, 2h), or an offset of every queue.",
)
@click.option("--from-start", is_flag=True, help="The same as --from first.")
@click.option("--queue", "queue_id", type=click.IntRange(0), help="Read this queue only.")
@click.option("-c", "--count", type=click.IntRange(1), help="End after COUNT messages.")
@click.option(
    "--follow/--no-follow",
    default=True,
    show_default=True,
    help="Wait for new messages, or end with the last one that exists at the start.",
)
@click.option(
    "-g",
    "--group",
    shell_complete=complete_groups,
    help="Read as a member of this consumer group.  [default: no group]",
)
@click.option("-o", "--output", "form", type=click.Choice(tuple(FORMS)), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --output json.")
@client_options
def tail(
    *,
    topic: str,
    tags: str,
    sql: str | None,
    start: Start,
    from_start: bool,
    queue_id: int | None,
    count: int | None,
    follow: bool,
    group: str | None,
    form: str,
    as_json: bool,
    client: dict[str, Any],
) -> None:
    """Print the messages of TOPIC as they arrive. Without --group no offset is stored."""
    if group is not None and (queue_id is not None or not follow):
        raise click.UsageError(
            "with --group, --queue and --no-follow are not possible: the group assigns the queues"
        )
    if group is not None and start.where == "offset":
        raise click.UsageError("with --group, --from must be first, last or a time")
    if from_start:
        start = Start("first")
    words = {"expression": sql or tags, "expression_type": "TAG" if sql is None else "SQL92"}
    printer = Printer(FORMS["json" if as_json else form], count)
    if group is None:
        run_command(_read(topic, words, start, queue_id, client, printer, follow=follow))
    else:
        run_command(_consume(topic, words, start, group, client, printer))


# -- with a group


async def _consume(
    topic: str, words: dict[str, Any], start: Start, group: str, client: dict[str, Any], printer: Printer
) -> None:
    options: dict[str, Any] = {**client, "auto_commit": False}
    options["consume_from_where"] = {
        "first": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        "last": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        "time": ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
    }[start.where]
    if start.where == "time":
        options["consume_timestamp"] = format_timestamp(start.value)
    async with LitePullConsumer(group, **options) as consumer:
        await consumer.queues(topic)
        consumer.subscribe(topic, **words)
        while True:
            for message in await consumer.poll(WAIT_MS):
                wants_more = printer.show(message)
                # It is printed, so commit: the group continues behind it, even if this program is killed now.
                await consumer.commit({message.queue: message.queue_offset + 1})
                if not wants_more:
                    return


# -- without a group

Arrived = asyncio.Queue[MessageExt | None]
"""Messages of all queues; None for each queue that is read to its end."""


async def _read(
    topic: str,
    words: dict[str, Any],
    start: Start,
    queue_id: int | None,
    client: dict[str, Any],
    printer: Printer,
    *,
    follow: bool,
) -> None:
    arrived: Arrived = asyncio.Queue(READ_AHEAD)
    async with PullConsumer(TOOLS_GROUP, **client) as consumer:
        queues = [queue for queue in await consumer.queues(topic) if queue_id in (None, queue.queue_id)]
        if not queues:
            raise ClientError(f"topic {topic} has no queue {queue_id} to read")
        async with asyncio.TaskGroup() as group:
            readers = [
                group.create_task(_read_queue(consumer, queue, words, start, arrived, follow=follow))
                for queue in queues
            ]
            unread = len(queues)
            while unread:
                message = await arrived.get()
                if message is None:
                    unread -= 1
                elif not printer.show(message):
                    break
            for reader in readers:
                reader.cancel()


async def _read_queue(
    consumer: PullConsumer,
    queue: MessageQueue,
    words: dict[str, Any],
    start: Start,
    arrived: Arrived,
    *,
    follow: bool,
) -> None:
    offset = await _first_offset(consumer, queue, start)
    end = None if follow else await consumer.max_offset(queue)
    while end is None or offset < end:
        try:
            result = await consumer.pull(queue, offset, **words, wait_ms=WAIT_MS if end is None else 0)
        except (NotReachable, RouteNotFound) as error:
            click.echo(f"pocketmq: {error}; trying again", err=True)
            await asyncio.sleep(AGAIN_SECONDS)
            continue
        for message in result.messages:
            if end is None or message.queue_offset < end:
                await arrived.put(message)
        if result.next_offset == offset and end is not None and not result.messages:
            break  # the messages were deleted meanwhile
        offset = result.next_offset
    await arrived.put(None)


async def _first_offset(consumer: PullConsumer, queue: MessageQueue, start: Start) -> int:
    if start.where == "last":
        return await consumer.max_offset(queue)
    lowest = await consumer.min_offset(queue)
    if start.where == "first":
        return lowest
    if start.where == "time":
        return await consumer.search_offset(queue, start.value)
    return max(lowest, min(start.value, await consumer.max_offset(queue)))
