"""Where a read begins and ends: times by topic and by queue, queues by name, topics by pattern."""

import json
from collections.abc import Iterator

import pytest
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.tables.brokers.broker_client import BrokerClient, shared_client
from pocketmq.pipeline.tables.brokers.read_planner import Planner
from pocketmq.pipeline.tables.planning.topic_options import read_source_options
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.brokers.reading import options, read

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def hours() -> Iterator[RocketMQ]:
    """Topic T: message m0, m1 ... m5 in queues 0 and 1 in turn, one each hour."""
    with EmbeddedServer(virtual_time=True) as server:
        rocketmq = RocketMQ(server)
        rocketmq.topic("T", queues=2)
        for number in range(6):
            rocketmq.send("T", f"m{number}", queue_id=number % 2)
            rocketmq.clock.advance("1h")
        yield rocketmq


def times(rocketmq: RocketMQ) -> list[int]:
    """The store time of each message, epoch ms."""
    return [message.store_timestamp for message in sorted(rocketmq.messages("T"), key=lambda one: one.text)]


def texts(rocketmq: RocketMQ, **more: str) -> list[str]:
    with BrokerClient(rocketmq.namesrv_addr).closing() as client:
        return sorted(read(client, options(rocketmq, "T", **more)))


def test_a_read_begins_and_ends_at_times(hours: RocketMQ) -> None:
    stored = times(hours)
    assert texts(hours, startingTimestamp=str(stored[2])) == ["m2", "m3", "m4", "m5"]
    assert texts(hours, startingTimestamp=str(stored[1] + 1), endingTimestamp=str(stored[4])) == ["m2", "m3"]


def test_a_group_without_offsets_is_said(hours: RocketMQ, caplog: pytest.LogCaptureFixture) -> None:
    committed = {"groupId": "nobody", "startingOffsets": "committed", "commitOffsets": "false"}
    assert texts(hours, **committed) == [f"m{number}" for number in range(6)]
    assert "group nobody has no offsets of T: its queues are taken from their first message" in caplog.text


def test_times_are_given_by_topic_or_by_queue(hours: RocketMQ) -> None:
    stored = times(hours)
    by_topic = json.dumps({"T": stored[3]})
    assert texts(hours, startingOffsetsByTimestamp=by_topic) == ["m3", "m4", "m5"]
    by_queue = json.dumps({"T": {"0": stored[4], "1": stored[1]}})
    assert texts(hours, startingOffsetsByTimestamp=by_queue) == ["m1", "m3", "m4", "m5"]
    assert texts(hours, endingOffsetsByTimestamp=by_queue) == ["m0", "m2"]


def test_a_queue_without_a_later_message_is_an_error_or_begins_at_its_end(hours: RocketMQ) -> None:
    late = json.dumps({"T": {"0": times(hours)[5], "1": times(hours)[5]}})
    with pytest.raises(OptionError, match="T broker-a queue 0 has no message at or after"):
        texts(hours, startingOffsetsByTimestamp=late)
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    assert texts(hours, startingOffsetsByTimestamp=late, **latest) == ["m5"]


def test_a_read_that_ends_at_a_time_ends_at_the_end_if_nothing_is_later(hours: RocketMQ) -> None:
    assert len(texts(hours, endingTimestamp=str(times(hours)[5] + HOUR_MS))) == 6


def test_only_assigned_queues_are_read(hours: RocketMQ) -> None:
    chosen = {"nameServer": hours.namesrv_addr}
    with BrokerClient(hours.namesrv_addr).closing() as client:
        for queues in ('{"T":{"broker-a":[1]}}', '{"T":[1]}'):
            own = read_source_options({**chosen, "assign": queues}, is_stream=False)
            assert read(client, own) == ["m1", "m3", "m5"]
        unknown = {**chosen, "assign": '{"T":{"broker-a":[1,7]}}'}
        with pytest.raises(OptionError, match="option assign: T broker-a queue 7 does not exist"):
            read(client, read_source_options(unknown, is_stream=False))


def test_topics_are_read_by_name_and_by_pattern(rocketmq: RocketMQ, client: BrokerClient) -> None:
    names = [rocketmq.topic(name, queues=1) for name in ("order-eu", "order-us", "bill-eu")]
    for name in names:
        rocketmq.send(name, name)
    assert sorted(read(client, options(rocketmq, f"{names[2]}, {names[0]}"))) == sorted([names[0], names[2]])
    chosen = {"nameServer": rocketmq.namesrv_addr, "subscribePattern": ".*-eu"}
    assert sorted(read(client, read_source_options(chosen, is_stream=False))) == sorted([names[0], names[2]])
    whole = {**chosen, "subscribePattern": "-eu"}
    assert Planner(client, read_source_options(whole, is_stream=False)).batch() == []


def test_the_tasks_of_a_process_share_one_connection_to_each_broker(rocketmq: RocketMQ) -> None:
    first, second = (options(rocketmq, topic) for topic in ("A", "B"))
    client = shared_client(first.namesrv_addr, first.access)
    assert client is shared_client(second.namesrv_addr, second.access)
    other = options(rocketmq, "A", **{"rocketmq.accessKey": "k", "rocketmq.secretKey": "s"})
    other_client = shared_client(other.namesrv_addr, other.access)
    assert other_client is not client, "other keys need a connection of their own"
