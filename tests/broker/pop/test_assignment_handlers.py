"""Assignments: default modes, and no route. Who gets which queues is in the recorded conversation `assignments`."""

from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import PeerError
from pocketmq.protocol.bodies.client import (
    ConsumerData,
    HeartbeatData,
    QueryAssignmentRequestBody,
    SubscriptionData,
)
from pocketmq.protocol.bodies.routes import QueueData, TopicRouteData
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.pop import QueryAssignment

from broker_fakes import ask, connect

ANY = [-1]


class Routes:
    """The name servers: they know `orders` with this number of queues, or do not answer."""

    def __init__(self, queues: int | None) -> None:
        self.queues = queues

    async def ask(self, request: object) -> TopicRouteData:
        if self.queues is None:
            raise PeerError("no name server answers")
        data = QueueData(broker_name="broker-a", read_queue_nums=self.queues, write_queue_nums=1, perm=6)
        return TopicRouteData(queue_datas=[data])


async def with_members(broker: Broker, members: int, queues: int | None) -> Broker:
    """A broker at which c1, c2, ... consume `orders`."""
    broker.popping.registration = Routes(queues)  # type: ignore[assignment]
    broker.topics.update(TopicConfig(topic_name="orders"))
    for number in range(1, members + 1):
        subscription = SubscriptionData(topic="orders", sub_string="*", sub_version=1)
        consumer = ConsumerData("g", "CONSUME_POP", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", [subscription])
        body = HeartbeatData(client_id=f"c{number}", consumer_data_set=[consumer]).encode()
        assert (await ask(broker, HeartBeat(), body, connection=connect(broker, 50_000 + number))).code == 0
    return broker


async def assigned(broker: Broker, client_id: str, strategy: str = "AVG", **changes: Any) -> list[int] | None:
    """The queues of a client; `None` if the answer has no list."""
    body = QueryAssignmentRequestBody("orders", "g", client_id, strategy, "CLUSTERING")
    fields = {**{name: getattr(body, name) for name in body.__struct_fields__}, **changes}
    answer = await ask(broker, QueryAssignment(), QueryAssignmentRequestBody(**fields).encode())
    assert answer.code == 0
    assignments = answer.json.get("messageQueueAssignments")
    return None if assignments is None else [one["messageQueue"]["queueId"] for one in assignments]


@pytest.mark.parametrize(
    ("mode", "share", "expected"), [("PULL", -1, [0, 1]), ("POP", -1, ANY), ("POP", 1, [0, 1, 2, 3])]
)
async def test_mode_that_was_not_set_is_the_default(
    broker: Broker, mode: str, share: int, expected: list[int]
) -> None:
    await with_members(broker, 5, 8)
    broker.config.default_message_request_mode = mode
    broker.config.default_pop_share_queue_num = share
    assert await assigned(broker, "c1") == expected
    assert await assigned(broker, "c1", topic="%RETRY%g") == [0, 1], "always pulled"


async def test_nothing_is_assigned_without_a_route(broker: Broker) -> None:
    await with_members(broker, 1, None)
    assert await assigned(broker, "c1") is None
