"""`pocketmq groups`: the consumer groups of a cluster, with members, subscriptions and lag."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec
from pocketmq.client import AdminClient, ClientError, NotOnline, RouteNotFound

from ..cluster_names import group_names
from ..options import client_options
from .asking import each
from .output import json_option, run_view, table, watch_option


class GroupRow(msgspec.Struct, frozen=True):
    """One group. `lag` is `None` if it has no offsets: it has read nothing, or it broadcasts."""

    name: str
    members: int
    mode: str | None
    """CLUSTERING or BROADCASTING, as its members say; `None` without members."""
    topics: list[str]
    lag: int | None


@click.command()
@click.option("--all", "with_system", is_flag=True, help="Also the groups of the broker and of its tools.")
@json_option
@watch_option
@client_options
def groups(*, with_system: bool, as_json: bool, watch_seconds: float | None, client: dict[str, Any]) -> None:
    """List the consumer groups with members, topics and lag."""
    run_view(
        client,
        lambda admin: group_rows(admin, with_system=with_system),
        _text,
        as_json=as_json,
        watch_seconds=watch_seconds,
    )


async def group_rows(admin: AdminClient, *, with_system: bool = False) -> list[GroupRow]:
    """Every group, with what its brokers and members say."""
    return await each(await group_names(admin, with_system=with_system), lambda name: _row(admin, name))


async def _row(admin: AdminClient, name: str) -> GroupRow:
    topics: set[str] = set()
    members, mode, lag = 0, None, None
    try:
        connections = await admin.consumer_connections(name)
        members, mode = len(connections.connection_set), connections.message_model
        topics.update(connections.subscription_table)
    except (NotOnline, RouteNotFound):
        pass
    try:
        stats = await admin.consume_stats(name)
        lag = stats.total_diff
        topics.update(queue.topic for queue in stats.offset_table)
    except ClientError:
        pass  # no offsets yet
    return GroupRow(name, members, mode, sorted(t for t in topics if not t.startswith("%RETRY%")), lag)


def _text(rows: Sequence[GroupRow]) -> str:
    if not rows:
        return "no consumer groups"
    return table(
        ("GROUP", "MEMBERS", "LAG", "MODE", "TOPICS"),
        [(row.name, row.members, row.lag, row.mode, " ".join(row.topics)) for row in rows],
    )
