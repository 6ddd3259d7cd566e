"""The queues of a group, and which members hold them. Only the members know: each is asked (307), for a short time."""

import asyncio
from typing import Any, Final

from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import PeerError, Refusal
from pocketmq.broker.membership.client import Client
from pocketmq.protocol.bodies.client_state import ConsumerRunningInfo
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.requests.to_client import GetConsumerRunningInfo
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import read_reply

from .cluster_views import offsets_of
from .pages import Pause

ASK_SECONDS: Final = 0.5
"""How long all members together may take."""
MOST_ASKED: Final = 64
"""Members that are asked; what the others hold is not known then."""


Holders = dict[tuple[str, int], list[str]]
"""Topic and queue id to the client ids that hold the queue."""


async def queues(broker: Broker, name: str, holders: Holders, pause: Pause) -> list[dict[str, Any]]:
    """Each queue of each topic that the group subscribes to or has read, with its offset (null: none committed), lag,
    and the client ids that hold it: several in a broadcasting group, none if nobody holds it or says so."""
    online = broker.membership.consumers.get(name)
    offsets = await offsets_of(broker, name, pause)
    found = []
    for topic in sorted({*(() if online is None else online.subscriptions), *offsets}):
        of_topic = offsets.get(topic, {})
        config = broker.topics.find(topic)
        for queue_id in range(0 if config is None else config.read_queue_nums):
            low, high = broker.store.min_offset(topic, queue_id), broker.store.max_offset(topic, queue_id)
            offset = of_topic.get(queue_id)
            found.append(
                {
                    "topic": topic,
                    "queue_id": queue_id,
                    "held_by": sorted(holders.get((topic, queue_id), ())),
                    "offset": offset,
                    "min_offset": low,
                    "max_offset": high,
                    "lag": max(0, high - max(offset or 0, low)),
                }
            )
            await pause()
    return found


async def holders(broker: Broker, name: str) -> Holders:
    """What the members say of themselves."""
    online = broker.membership.consumers.get(name)
    clients = [] if online is None else list(online.clients())[:MOST_ASKED]
    answers = await asyncio.gather(*(_running_info(client, name) for client in clients))
    found: Holders = {}
    for client, info in zip(clients, answers, strict=True):
        if info is not None:
            for queue in {*info.mq_table, *info.mq_pop_table}:
                found.setdefault((queue.topic, queue.queue_id), []).append(client.client_id)
    return found


async def _running_info(client: Client, name: str) -> ConsumerRunningInfo | None:
    """What a member says of itself; None if it does not answer."""
    request = GetConsumerRunningInfo(consumer_group=name, client_id=client.client_id)
    try:
        answer = await client.connection.exchange(request, timeout_seconds=ASK_SECONDS)
        if answer.code != ResponseCode.SUCCESS or answer.body is None:
            return None
        return read_reply(request, answer.fields, answer.body)
    except (PeerError, Refusal, BodyError):
        return None
