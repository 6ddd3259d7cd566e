"""PullMessage, UpdateOffset, GetOffset, QueryOffset and QueryAssignment."""

import asyncio
from typing import Any

import pytest
from pocketmq.grpc_endpoint.calls.refusals import GrpcStatus
from pocketmq.grpc_endpoint.messages import (
    Broker,
    Code,
    Duration,
    FilterExpression,
    GetOffsetRequest,
    MessageQueue,
    Permission,
    PullMessageRequest,
    QueryAssignmentRequest,
    QueryOffsetPolicy,
    QueryOffsetRequest,
    Resource,
    Timestamp,
    UpdateOffsetRequest,
)
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.store import VirtualClock

from grpc_consumers import Asked, Consumers, turns

G = Resource(name="g")


def a_queue(queue_id: int = 0, topic: str = "orders", broker: str = "broker-a") -> MessageQueue:
    return MessageQueue(topic=Resource(name=topic), id=queue_id, broker=Broker(name=broker))


def pull(consumers: Consumers, offset: int = 0, seconds: int = 0, **fields: Any) -> Asked:
    of_call = {"seconds": fields.pop("deadline")} if "deadline" in fields else {}
    fields.setdefault("message_queue", a_queue())
    request = PullMessageRequest(
        group=G, offset=offset, long_polling_timeout=Duration(seconds=seconds), **fields
    )
    return consumers.ask(request, **of_call)


# -- pull


async def test_a_pull_reads_from_its_offset_and_says_where_to_go_on(consumers: Consumers) -> None:
    asked = pull(consumers, 1, batch_size=2)
    assert asked.status == (Code.OK, "OK")
    assert asked.bodies == ["m1", "m2"]
    assert asked.handles == ["", ""]
    assert asked.replies[-1].next_offset == 3
    assert pull(consumers, 1).bodies == ["m1", "m2", "m3"]  # and again: nothing was acknowledged


async def test_a_pull_filters(consumers: Consumers) -> None:
    asked = pull(consumers, filter_expression=FilterExpression(expression="B"))
    assert (asked.bodies, asked.replies[-1].next_offset) == (["m1", "m3"], 4)
    nothing = pull(consumers, filter_expression=FilterExpression(expression="C"))
    assert nothing.status == (Code.MESSAGE_NOT_FOUND, "no match message")
    assert nothing.replies[-1].next_offset == 4


@pytest.mark.parametrize(("offset", "next_offset"), [(-1, 0), (99, 4)])
async def test_a_pull_outside_the_queue_says_where_it_is(
    consumers: Consumers, offset: int, next_offset: int
) -> None:
    asked = pull(consumers, offset)
    assert asked.status[0] == Code.ILLEGAL_OFFSET
    assert asked.replies[-1].next_offset == next_offset


async def test_a_pull_at_the_end_waits_for_the_next_message(consumers: Consumers) -> None:
    assert pull(consumers, 4).status == (Code.MESSAGE_NOT_FOUND, "no new message")
    waiting = pull(consumers, 4, seconds=20)
    assert waiting.replies == []
    consumers.store("new")
    await turns()
    assert (waiting.bodies, waiting.replies[-1].next_offset) == (["new"], 5)


async def test_a_pull_that_waited_long_enough_is_answered(consumers: Consumers) -> None:
    waiting = pull(consumers, 4, seconds=20, deadline=0.2)
    while not waiting.is_ended:  # noqa: ASYNC110 - its timer is the wall's
        await asyncio.sleep(0.02)
    assert waiting.status == (Code.MESSAGE_NOT_FOUND, "no new message")
    assert waiting.replies[-1].next_offset == 4
    consumers.store("new")
    await turns()
    assert len(waiting.replies) == 2


async def test_a_cancelled_pull_is_not_answered(consumers: Consumers) -> None:
    waiting = pull(consumers, 4, seconds=20)
    waiting.call.cancel()
    consumers.store("new")
    await turns()
    assert waiting.replies == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"message_queue": a_queue(1)}, Code.BAD_REQUEST),
        ({"message_queue": a_queue(-1)}, Code.BAD_REQUEST),
        ({"message_queue": a_queue(broker="other")}, Code.BAD_REQUEST),
        ({"message_queue": a_queue(topic="nothing")}, Code.TOPIC_NOT_FOUND),
        ({"message_queue": a_queue(topic="")}, Code.ILLEGAL_TOPIC),
        ({"batch_size": -1}, Code.BAD_REQUEST),
        ({"filter_expression": FilterExpression(expression="||")}, Code.ILLEGAL_FILTER_EXPRESSION),
    ],
)
async def test_pulls_are_refused(consumers: Consumers, fields: dict[str, Any], code: Code) -> None:
    assert pull(consumers, **fields).status[0] == code


async def test_a_group_that_cannot_be_made_is_not_found(consumers: Consumers) -> None:
    consumers.broker.config.auto_create_subscription_group = False
    request = PullMessageRequest(group=Resource(name="nobody"), message_queue=a_queue())
    consumers.broker.groups.delete("nobody")
    assert consumers.ask(request).status[0] in (Code.CONSUMER_GROUP_NOT_FOUND, Code.OK)


# -- offsets


async def test_a_stored_offset_is_read_again(consumers: Consumers) -> None:
    assert consumers.ask(UpdateOffsetRequest(group=G, message_queue=a_queue(), offset=3)).status[0] == Code.OK
    asked = consumers.ask(GetOffsetRequest(group=G, message_queue=a_queue()))
    assert (asked.status[0], asked.reply.offset) == (Code.OK, 3)
    lower = consumers.ask(UpdateOffsetRequest(group=G, message_queue=a_queue(), offset=1))
    assert lower.status[0] == Code.OK
    assert consumers.ask(GetOffsetRequest(group=G, message_queue=a_queue())).reply.offset == 1
    assert consumers.receive().bodies == ["m1", "m2", "m3"]


async def test_bad_offsets_are_refused(consumers: Consumers) -> None:
    negative = consumers.ask(UpdateOffsetRequest(group=G, message_queue=a_queue(), offset=-1))
    assert negative.status == (Code.ILLEGAL_OFFSET, "the offset must not be negative, got -1")
    unknown = UpdateOffsetRequest(group=Resource(name="nobody"), message_queue=a_queue(), offset=1)
    assert consumers.ask(unknown).status == (Code.CONSUMER_GROUP_NOT_FOUND, "Group nobody not exist!")


async def test_the_offset_of_a_group_that_has_none_may_be_not_found(consumers: Consumers) -> None:
    consumers.broker.store.is_hot = lambda *_: False  # type: ignore[method-assign]
    request = GetOffsetRequest(group=Resource(name="fresh"), message_queue=a_queue())
    assert consumers.ask(request).status[0] == Code.OFFSET_NOT_FOUND


async def test_the_ends_of_a_queue_and_the_offset_at_a_time(
    consumers: Consumers, clock: VirtualClock
) -> None:
    clock.advance(60_000)
    later = clock.now_ms()
    consumers.store("late")

    def offset_at(policy: QueryOffsetPolicy, timestamp: Timestamp | None = None) -> int:
        request = QueryOffsetRequest(message_queue=a_queue(), query_offset_policy=policy, timestamp=timestamp)
        asked = consumers.ask(request)
        assert asked.status[0] == Code.OK
        offset: int = asked.reply.offset
        return offset

    assert offset_at(QueryOffsetPolicy.BEGINNING) == 0
    assert offset_at(QueryOffsetPolicy.END) == 5
    assert offset_at(QueryOffsetPolicy.TIMESTAMP, Timestamp.of_ms(later)) == 4
    request = QueryOffsetRequest(message_queue=a_queue(), query_offset_policy=QueryOffsetPolicy.TIMESTAMP)
    assert consumers.ask(request).status[0] == Code.BAD_REQUEST


async def test_a_strict_endpoint_does_not_know_these_rpcs(make_consumers: Any) -> None:
    strict: Consumers = make_consumers(strict=True)
    strict.fill()
    for request in (
        PullMessageRequest(group=G, message_queue=a_queue()),
        UpdateOffsetRequest(group=G, message_queue=a_queue()),
        GetOffsetRequest(group=G, message_queue=a_queue()),
        QueryOffsetRequest(message_queue=a_queue()),
    ):
        asked = strict.ask(request)
        assert asked.grpc_status == GrpcStatus.UNIMPLEMENTED
        assert asked.replies == []


# -- assignment


def assignments(consumers: Consumers, topic: str = "orders", group: str = "g") -> Asked:
    return consumers.ask(QueryAssignmentRequest(topic=Resource(name=topic), group=Resource(name=group)))


def assigned(asked: Asked) -> list[tuple[int, Permission, str, int]]:
    queues = [one.message_queue for one in asked.reply.assignments]
    return [(queue.id, queue.permission, queue.broker.name, queue.broker.id) for queue in queues]


async def test_a_group_receives_from_any_queue_of_the_broker(consumers: Consumers) -> None:
    consumers.fill(topic="wide", queues=3)
    asked = assignments(consumers, "wide", "unknown")
    assert asked.status == (Code.OK, "OK")
    assert assigned(asked) == [(-1, Permission.READ_WRITE, "broker-a", 0)]
    [queue] = [one.message_queue for one in asked.reply.assignments]
    assert queue.topic.name == "wide"
    assert [(one.host, one.port) for one in queue.broker.endpoints.addresses] == [
        (consumers.broker.identity.address.partition(":")[0], 8081)
    ]


async def test_a_group_in_order_receives_from_each_queue(consumers: Consumers) -> None:
    consumers.fill(topic="wide", queues=3)
    consumers.broker.groups.update(SubscriptionGroupConfig(group_name="g", consume_message_orderly=True))
    assert [one[0] for one in assigned(assignments(consumers, "wide"))] == [0, 1, 2]


async def test_assignments_are_refused(consumers: Consumers) -> None:
    consumers.broker.config.auto_create_topic_enable = False
    assert assignments(consumers, "nothing").status[0] == Code.TOPIC_NOT_FOUND
    assert assignments(consumers, "").status[0] == Code.ILLEGAL_TOPIC
    assert assignments(consumers, group=" ").status[0] == Code.ILLEGAL_CONSUMER_GROUP
    consumers.fill(topic="writable", perm=2)
    assert assignments(consumers, "writable").status == (Code.FORBIDDEN, "no readable queue")
    consumers.fill(topic="readable", perm=4)
    assert assigned(assignments(consumers, "readable")) == [(-1, Permission.READ, "broker-a", 0)]
