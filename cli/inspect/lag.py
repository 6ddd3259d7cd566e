"""`pocketmq lag`: how many messages a group has still to consume, queue by queue."""

from collections.abc import Sequence, Set
from typing import Any

import click
import msgspec
from pocketmq.client import AdminClient, ClientError, MessageQueue
from pocketmq.console.values import GroupQueue, lag_of

from ..options import client_options
from ..output import json_option, run_view, table, watch_option
from .cluster_names import complete_groups, complete_topics, gather_limited, group_names, masters


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


async def lag_rows(admin: AdminClient, group: str | None, topic: str | None) -> list[GroupQueue]:
    """The queues of one group, or of every group that has offsets. A named group without any raises `ClientError`."""
    addresses = await masters(admin)
    if group is not None:
        rows = await _rows(admin, group, topic, addresses)
        if not rows:
            of_topic = "" if topic is None else f" in topic {topic}"
            raise ClientError(
                f"group {group} has no offsets{of_topic}: it has read nothing yet, or it broadcasts"
            )
        return rows
    found = await gather_limited(await group_names(admin), lambda name: _rows(admin, name, topic, addresses))
    return [row for rows in found for row in rows]


async def _rows(
    admin: AdminClient, group: str, topic: str | None, addresses: dict[str, str]
) -> list[GroupQueue]:
    rows = [row for row in await queue_rows(admin, group, addresses) if topic in (None, row.topic)]
    holders = await admin.queue_holders(group) if rows else {}
    return [
        msgspec.structs.replace(
            row, held_by=holders.get(MessageQueue(row.topic, row.broker_name, row.queue_id), [])
        )
        for row in rows
    ]


async def queue_rows(
    admin: AdminClient, group: str, addresses: dict[str, str], subscribed: Set[str] = frozenset()
) -> list[GroupQueue]:
    """The queues in which the group has offsets, and those of topics that it subscribes to; without `held_by`."""
    offsets = {}
    for address in addresses.values():
        try:
            offsets.update((await admin.consume_stats_at(address, group)).offset_table)
        except ClientError:  # it has none there
            continue
    found = []
    for topic in sorted({queue.topic for queue in offsets} | subscribed):
        try:
            places = (await admin.topic_status(topic)).offset_table
        except ClientError:  # deleted, or a retry topic without a queue
            continue
        for queue, place in sorted(places.items()):
            at = offsets.get(queue)
            if at is None and topic not in subscribed:
                continue
            offset = None if at is None else at.consumer_offset
            found.append(
                GroupQueue(
                    group=group,
                    topic=topic,
                    broker_name=queue.broker_name,
                    queue_id=queue.queue_id,
                    held_by=[],
                    offset=offset,
                    min_offset=place.min_offset,
                    max_offset=place.max_offset,
                    lag=lag_of(offset, place.min_offset, place.max_offset),
                )
            )
    return found


def _text(rows: Sequence[GroupQueue]) -> str:
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
                row.max_offset,
                row.lag,
                " ".join(row.held_by) or None,
            )
            for row in rows
        ],
    )
    return f"{text}\nlag {sum(row.lag for row in rows)}"
