"""`pocketmq groups`: the consumer groups of a cluster, with members, subscriptions and lag."""

from collections.abc import Sequence

import click
from pocketmq.client import AdminClient, NotOnline, RouteNotFound
from pocketmq.console.values import Group, GroupQueue, member_of, queue_names
from pocketmq.protocol.bodies.client_state import ConsumerConnection

from ..output import table, view
from .cluster_names import gather_limited, group_names, masters
from .lag import queue_rows


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
        members=[member_of(one) for one in online.connection_set],
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


@click.command()
@click.option("--all", "with_system", is_flag=True, help="Also the groups of the broker and of its tools.")
@view(group_rows, _text)
def groups() -> None:
    """List the consumer groups with members, topics and lag."""
