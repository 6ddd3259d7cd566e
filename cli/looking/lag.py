"""`pocketmq lag`: how many messages a group has still to consume, queue by queue."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec
from pocketmq.client import AdminClient, ClientError
from pocketmq.protocol.message.message_queue import MessageQueue

from ..cluster_names import complete_groups, complete_topics, group_names, masters
from ..options import client_options
from .asking import each
from .output import json_option, run_view, table, watch_option


class LagRow(msgspec.Struct, frozen=True):
    """A group in one queue. `offset` is the next message the group will read, `end` one past the last message."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    offset: int
    end: int
    lag: int
    client_id: str | None
    """The member that reads the queue; `None` without one, and for brokers that do not say."""


@click.command()
@click.option(
    "-g",
    "--group",
    shell_complete=complete_groups,
    help="Only this group.  [default: every group with offsets]",
)
@click.option("-t", "--topic", shell_complete=complete_topics, help="Only this topic.")
@json_option
@watch_option
@client_options
def lag(
    *,
    group: str | None,
    topic: str | None,
    as_json: bool,
    watch_seconds: float | None,
    client: dict[str, Any],
) -> None:
    """Say how many messages a group has still to consume, queue by queue."""
    run_view(
        client,
        lambda admin: lag_rows(admin, group, topic),
        _text,
        as_json=as_json,
        watch_seconds=watch_seconds,
    )


async def lag_rows(admin: AdminClient, group: str | None, topic: str | None) -> list[LagRow]:
    """The queues of one group, or of every group that has offsets. A named group without any raises `ClientError`."""
    if group is not None:
        return await _rows(admin, group, topic)
    found = await each(await group_names(admin), lambda name: _rows_if_any(admin, name, topic))
    return [row for rows in found for row in rows]


async def _rows_if_any(admin: AdminClient, group: str, topic: str | None) -> list[LagRow]:
    try:
        return await _rows(admin, group, topic)
    except ClientError:
        return []


async def _rows(admin: AdminClient, group: str, topic: str | None) -> list[LagRow]:
    found = {}
    for address in await masters(admin):
        found.update((await admin.consume_stats_at(address, group)).offset_table)
    wanted = {queue: place for queue, place in found.items() if topic in (None, queue.topic)}
    if not wanted:
        of_topic = "" if topic is None else f" in topic {topic}"
        raise ClientError(
            f"group {group} has no offsets{of_topic}: it has read nothing yet, or it broadcasts"
        )
    readers = await _readers(admin, group)
    return [
        LagRow(
            group,
            queue.topic,
            queue.broker_name,
            queue.queue_id,
            place.consumer_offset,
            place.broker_offset,
            place.broker_offset - place.consumer_offset,
            readers.get(queue),
        )
        for queue, place in sorted(wanted.items())
    ]


async def _readers(admin: AdminClient, group: str) -> dict[MessageQueue, str]:
    """The member of each queue, asked of the members themselves (307); silent members have no queues here."""
    try:
        members = (await admin.consumer_connections(group)).connection_set
    except ClientError:
        return {}
    readers: dict[MessageQueue, str] = {}
    for member in members:
        try:
            info = await admin.consumer_running_info(group, member.client_id or "")
        except ClientError:
            continue
        readers.update(dict.fromkeys(info.mq_table, member.client_id or ""))
    return readers


def _text(rows: Sequence[LagRow]) -> str:
    if not rows:
        return "no group has offsets"
    text = table(
        ("GROUP", "TOPIC", "BROKER", "QUEUE", "OFFSET", "END", "LAG", "CLIENT"),
        [
            (
                row.group,
                row.topic,
                row.broker_name,
                row.queue_id,
                row.offset,
                row.end,
                row.lag,
                row.client_id,
            )
            for row in rows
        ],
    )
    return f"{text}\nlag {sum(row.lag for row in rows)}"
