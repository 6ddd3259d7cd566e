"""`pocketmq lag`: how many messages a group has still to consume, queue by queue."""

from collections.abc import Sequence, Set

import click
from pocketmq.client import AdminClient, ClientError
from pocketmq.console.values import GroupQueue, group_queue

from ..output import table, view
from .cluster_names import complete_groups, complete_topics, gather_limited, group_names, masters


async def lag_rows(admin: AdminClient, group: str | None, topic: str | None) -> list[GroupQueue]:
    """The queues of one group, or of every group that has offsets. A named group without any raises `ClientError`."""
    addresses = await masters(admin)

    async def rows_of(name: str) -> list[GroupQueue]:
        rows = await queue_rows(admin, name, addresses, with_holders=True)
        return [row for row in rows if topic in (None, row.topic)]

    if group is not None:
        rows = await rows_of(group)
        if not rows:
            of_topic = "" if topic is None else f" in topic {topic}"
            raise ClientError(
                f"group {group} has no offsets{of_topic}: it has read nothing yet, or it broadcasts"
            )
        return rows
    found = await gather_limited(await group_names(admin), rows_of)
    return [row for rows in found for row in rows]


async def queue_rows(
    admin: AdminClient,
    group: str,
    addresses: dict[str, str],
    subscribed: Set[str] = frozenset(),
    *,
    with_holders: bool = False,
) -> list[GroupQueue]:
    """The queues in which the group has offsets, and those of topics that it subscribes to."""
    offsets = {}
    for address in addresses.values():
        try:
            offsets.update((await admin.consume_stats_at(address, group)).offset_table)
        except ClientError:  # it has none there
            continue
    holders = await admin.queue_holders(group) if with_holders and offsets else {}
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
            held_by = holders.get(queue, [])
            found.append(group_queue(group, queue, held_by, offset, place.min_offset, place.max_offset))
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


@click.command()
@click.option(
    "-g",
    "--group",
    shell_complete=complete_groups,
    help="Only this group.  [default: every group with offsets]",
)
@click.option("-t", "--topic", shell_complete=complete_topics, help="Only this topic.")
@view(lag_rows, _text)
def lag() -> None:
    """Say how many messages a group has still to consume, queue by queue."""
