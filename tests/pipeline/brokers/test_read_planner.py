"""Reads planned with a broker: positions beyond the end, times and expressions."""

import re

import pytest
from pocketmq.pipeline.errors import DataLossError, OptionError
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient
from pocketmq.pipeline.tables.brokers.read_planner import Planner
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.pipeline.tables.planning.ranges import QueueBounds
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.brokers.reading import options, read


@pytest.mark.parametrize(
    ("option", "usual", "message", "left"),
    [
        # No range begins there, so that the loss of the messages before it would be no range's either.
        ("startingOffsets", -2, r"offsets \[2, 99\), do not exist", ["m1", "m3"]),
        ("endingOffsets", -1, r"offsets \[2, 99\)", ["m0", "m2", "m1", "m3"]),
    ],
)
def test_an_offset_beyond_the_end_is_a_loss_or_skipped(
    rocketmq: RocketMQ, client: BrokerClient, option: str, usual: int, message: str, left: list[str]
) -> None:
    topic = rocketmq.topic(option, queues=2)
    for number in range(4):
        rocketmq.send(topic, f"m{number}", queue_id=number % 2)
    offsets = {option: f'{{"{topic}":{{"0":99,"1":{usual}}}}}'}
    with pytest.raises(DataLossError, match=rf"queue 0: 97 messages, {message}"):
        read(client, options(rocketmq, topic, **offsets))
    tolerant = options(rocketmq, topic, **offsets, failOnDataLoss="false")
    assert read(client, tolerant) == left


@pytest.mark.parametrize(("seconds", "is_new"), [(-3600, True), (30, True), (3600, False)])
def test_a_queue_is_new_if_clocks_that_are_a_little_apart_allow_it(
    rocketmq: RocketMQ, client: BrokerClient, seconds: int, is_new: bool
) -> None:
    """The position is of the driver's clock, the message of the broker's, which may be behind by half a minute."""
    topic = rocketmq.topic(f"new{seconds}", queues=1)
    rocketmq.send(topic, "m")
    (sent,) = rocketmq.messages(topic)
    planner = Planner(client, options(rocketmq, topic))
    (queue,) = planner.queues()
    position_ms = sent.store_timestamp + 1000 * seconds
    assert planner.is_new_since(queue, QueueBounds(0, 1), position_ms) is is_new
    assert not planner.is_new_since(queue, QueueBounds(0, 1), 0), "a position without a time"


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ('{"times":1,"another":1}', "exactly the topics that are read; wrong or missing: another"),
        ('{"another":1}', "wrong or missing: another, times"),
        ("{}", "wrong or missing: times"),
        ('{"times":-5}', "epoch ms, 0 or more, got -5"),
        ('{"times":1.5}', "epoch ms, 0 or more, got 1.5"),
        ('{"times":true}', "epoch ms, 0 or more, got True"),
        ('{"times":{"0":-1}}', "epoch ms, 0 or more, got -1"),
        ('{"times":{"0":1.5}}', 'JSON such as {"T":1700000000000}'),
        ('{"times":{"1":5}}', "missing: times broker-a queue 0; unknown: times broker-a queue 1"),
        ("[]", "JSON such as"),
    ],
)
def test_times_that_are_invalid_or_of_other_topics_are_refused(
    times: str, message: str, rocketmq: RocketMQ
) -> None:
    queue = Queue("times", "broker-a", 0)
    chosen = options(rocketmq, "times", startingOffsetsByTimestamp=times)
    with pytest.raises(OptionError, match=f"option startingOffsetsByTimestamp.*{re.escape(message)}"):
        Planner(BrokerClient(rocketmq.namesrv_addr), chosen).start({queue: QueueBounds(0, 5)})


@pytest.mark.parametrize(
    ("expression", "is_on", "message"),
    [
        ("TAGS ===", True, "broker-a cannot filter by 'TAGS ==='"),
        ("TAGS = 'A'", False, "does not support consumer to filter message by SQL92"),
    ],
)
def test_an_expression_the_broker_cannot_use_is_refused_when_planning(
    expression: str, is_on: bool, message: str
) -> None:
    """A broker ignores such an expression in a pull, so a wrong one would read everything."""
    with EmbeddedServer(enablePropertyFilter=is_on) as server:
        rocketmq = RocketMQ(server)
        chosen = options(rocketmq, rocketmq.topic("T"), filterType="SQL92", subExpression=expression)
        with (
            BrokerClient(server.namesrv_addr).closing() as client,
            pytest.raises(OptionError, match=f"option subExpression: .*{message}"),
        ):
            Planner(client, chosen).batch()
