"""`pocketmq groups`: the consumer groups of a cluster, with members, subscriptions and lag."""

from collections.abc import Sequence
from typing import Any

import click
from pocketmq.client import AdminClient, NotOnline, RouteNotFound
from pocketmq.console.values import Group, GroupQueue, Member, queue_names
from pocketmq.protocol.bodies.client_state import ConsumerConnection
from pocketmq.protocol.languages import version_name

from ..options import client_options
from ..output import json_option, run_view, table, watch_option
from .cluster_names import gather_limited, group_names, masters
from .lag import queue_rows


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


async def group_rows(admin: AdminClient, *, with_system: bool = False) -> list[Group]:
    """Every group, with what its brokers and members say."""
    addresses = await masters(admin)
    names = await group_names(admin, with_system=with_system)
    return await gather_limited(names, lambda name: _row(admin, name, addresses))


async def _row(admin: AdminClient, name: str, addresses: dict[str, str]) -> Group:
    try:
        online = await admin.consumer_connections(name)
    except (NotOnline, RouteNotFound):
        online = ConsumerConnection()
    queues = await queue_rows(admin, name, addresses, set(online.subscription_table))
    topics = sorted({queue.topic for queue in queues if queue.offset is not None})
    return Group(
        name=name,
        mode=online.message_model,
        consume_from_where=online.consume_from_where,
        members=[
            Member(
                client_id=member.client_id or "",
                address=(member.client_addr or "").lstrip("/"),
                language=member.language or "",
                version=version_name(member.version),
            )
            for member in online.connection_set
        ],
        subscriptions={topic: one.sub_string or "*" for topic, one in online.subscription_table.items()},
        offsets={topic: _offsets(topic, queues, len(addresses)) for topic in topics},
        lag=sum(queue.lag for queue in queues),
    )


def _offsets(topic: str, queues: Sequence[GroupQueue], brokers: int) -> dict[str, int]:
    found = {
        (queue.broker_name, queue.queue_id): queue.offset
        for queue in queues
        if queue.topic == topic and queue.offset is not None
    }
    return queue_names(found, brokers=brokers)


def _text(rows: Sequence[Group]) -> str:
    if not rows:
        return "no consumer groups"
    return table(
        ("GROUP", "MEMBERS", "LAG", "MODE", "TOPICS"),
        [(row.name, len(row.members), row.lag, row.mode, " ".join(_topics(row))) for row in rows],
    )


def _topics(row: Group) -> list[str]:
    return [name for name in sorted({*row.subscriptions, *row.offsets}) if not name.startswith("%RETRY%")]
