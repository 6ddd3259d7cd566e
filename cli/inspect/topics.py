"""`pocketmq topics`: the topics of a cluster, with their queues and how many messages each holds."""

from collections.abc import Sequence

import click
from pocketmq.client import AdminClient, ClientError, TopicConfig
from pocketmq.console.values import Topic, TopicQueue, topic_of
from pocketmq.protocol.message.topics import is_system_topic

from ..output import table, view
from ..times import local_time
from .cluster_names import gather_limited, masters


async def topic_rows(admin: AdminClient, *, with_system: bool = False) -> list[Topic]:
    """Every topic of every master; topics of the brokers themselves and of retries only `with_system`."""
    configs: dict[str, dict[str, TopicConfig]] = {}
    hidden: set[str] = set()
    for broker_name, address in (await masters(admin)).items():
        for name, config in (await admin.topic_configs(address)).items():
            configs.setdefault(name, {})[broker_name] = config
        if not with_system:
            hidden.update(await admin.system_topics(address))
    names = [
        name
        for name in sorted(configs)
        if with_system or not (name in hidden or is_system_topic(name) or name.startswith("%"))
    ]
    return await gather_limited(names, lambda name: _row(admin, name, configs[name]))


async def _row(admin: AdminClient, name: str, configs: dict[str, TopicConfig]) -> Topic:
    try:
        places = (await admin.topic_status(name)).offset_table
    except ClientError:
        places = {}  # it has no queues, or was deleted since it was listed
    newest_ms = max((place.last_update_timestamp for place in places.values()), default=0)
    queues = [
        TopicQueue(queue.broker_name, queue.queue_id, place.min_offset, place.max_offset)
        for queue, place in sorted(places.items())
    ]
    return topic_of(configs, queues, newest_ms)


def _text(rows: Sequence[Topic]) -> str:
    if not rows:
        return "no topics"
    return table(
        ("TOPIC", "QUEUES", "MESSAGES", "LAST STORED", "BROKERS"),
        [
            (row.name, row.queues, row.messages, local_time(row.last_stored_ms), " ".join(row.brokers))
            for row in rows
        ],
    )


@click.command()
@click.option("--all", "with_system", is_flag=True, help="Also the topics that brokers made for themselves.")
@view(topic_rows, _text)
def topics() -> None:
    """List the topics with their queues and messages."""
