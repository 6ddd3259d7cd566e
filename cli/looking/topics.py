"""`pocketmq topics`: the topics of a cluster, with their queues and how many messages each holds."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec
from pocketmq.client import AdminClient, ClientError
from pocketmq.protocol.message.topics import is_system_topic

from ..cluster_names import masters
from ..options import client_options
from ..times import local_time
from .asking import each
from .output import json_option, run_view, table, watch_option


class TopicRow(msgspec.Struct, frozen=True):
    """One topic. `queues` are those that can be read, at all brokers; `messages` are still stored."""

    name: str
    queues: int
    brokers: list[str]
    messages: int
    last_stored_ms: int | None


@click.command()
@click.option("--all", "with_system", is_flag=True, help="Also the topics that brokers made for themselves.")
@json_option
@watch_option
@client_options
def topics(*, with_system: bool, as_json: bool, watch_seconds: float | None, client: dict[str, Any]) -> None:
    """List the topics with their queues and messages."""
    run_view(
        client,
        lambda admin: topic_rows(admin, with_system=with_system),
        _text,
        as_json=as_json,
        watch_seconds=watch_seconds,
    )


async def topic_rows(admin: AdminClient, *, with_system: bool = False) -> list[TopicRow]:
    """Every topic that has a route; topics of the brokers themselves and of retries only `with_system`."""
    hidden: set[str] = set()
    if not with_system:
        for address in await masters(admin):
            hidden.update(await admin.system_topics(address))
    names = [
        name
        for name in await admin.topics()
        if with_system or not (name in hidden or is_system_topic(name) or name.startswith("%"))
    ]
    rows = await each(names, lambda name: _row(admin, name))
    return [row for row in rows if row is not None]


async def _row(admin: AdminClient, name: str) -> TopicRow | None:
    try:
        route = await admin.topic_route(name)
        queues = sum(data.read_queue_nums for data in route.queue_datas)
        brokers = sorted(data.broker_name or "" for data in route.queue_datas)
    except ClientError:
        return None  # deleted since it was listed
    try:
        offsets = (await admin.topic_status(name)).offset_table.values()
    except ClientError:
        offsets = {}.values()
    messages = sum(place.max_offset - place.min_offset for place in offsets)
    newest = max((place.last_update_timestamp for place in offsets), default=0)
    return TopicRow(name, queues, brokers, messages, newest if newest > 0 else None)


def _text(rows: Sequence[TopicRow]) -> str:
    if not rows:
        return "no topics"
    return table(
        ("TOPIC", "QUEUES", "MESSAGES", "LAST STORED", "BROKERS"),
        [
            (row.name, row.queues, row.messages, local_time(row.last_stored_ms), " ".join(row.brokers))
            for row in rows
        ],
    )
