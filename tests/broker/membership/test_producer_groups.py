"""Producers by group and by client id."""

import time
from typing import Any

import pytest
from pocketmq.broker.membership.consumer_groups import Client, ConsumerGroups
from pocketmq.broker.membership.producer_groups import ProducerGroups

from broker_fakes import FakeConnection

CONSUMER: dict[str, Any] = {
    "consume_type": "CONSUME_PASSIVELY",
    "message_model": "CLUSTERING",
    "consume_from_where": "CONSUME_FROM_LAST_OFFSET",
    "subscriptions": (),
}


def client(connection: FakeConnection, client_id: str = "p", now_ms: int = 0) -> Client:
    return Client(connection, client_id, "JAVA", 513, now_ms)


async def test_a_client_is_found_by_its_id_and_in_its_groups() -> None:
    producers, one = ProducerGroups(), FakeConnection(1)
    producers.register("g", client(one))
    producers.register("CLIENT_INNER_PRODUCER", client(one))
    assert producers.find_connection("p") is one
    assert set(producers.all()) == {"g", "CLIENT_INNER_PRODUCER"}
    assert producers.find_connection("other") is None


async def test_connections_of_a_group_take_turns_and_closed_ones_are_skipped() -> None:
    producers = ProducerGroups()
    one, two, three = (FakeConnection(port) for port in (1, 2, 3))
    for number, connection in enumerate((one, two, three)):
        producers.register("g", client(connection, f"p{number}"))
    turns = [producers.available_connection("g") for _ in range(6)]
    assert set(turns[:3]) == {one, two, three}
    assert turns[:3] == turns[3:]
    two.closed = three.closed = True
    assert [producers.available_connection("g") for _ in range(3)] == [one] * 3
    one.closed = True
    assert producers.available_connection("g") is None
    assert producers.available_connection("nobody") is None


@pytest.mark.parametrize("is_5", [True, False])
async def test_only_the_4_9_line_keeps_a_group_whose_last_connection_was_cut(is_5: bool) -> None:
    producers, one = ProducerGroups(is_5=is_5), FakeConnection(1)
    producers.register("g", client(one))
    producers.unregister("g", one)
    assert producers.get("g") is None
    producers.register("g", client(one))
    producers.connection_closed(one)
    assert producers.get("g") == (None if is_5 else {})
    assert producers.all() == {}


async def test_the_id_of_a_client_that_came_back_survives_the_end_of_its_old_connection() -> None:
    producers = ProducerGroups()
    old, new = FakeConnection(1), FakeConnection(2)
    producers.register("g", client(old))
    producers.register("g", client(new))
    producers.connection_closed(old)
    assert producers.find_connection("p") is new


async def test_the_id_is_known_until_the_last_group_of_the_connection_is_left() -> None:
    producers, one = ProducerGroups(), FakeConnection(1)
    producers.register("g", client(one))
    producers.register("h", client(one))
    producers.unregister("g", one)
    assert producers.find_connection("p") is one
    producers.unregister("h", one)
    assert producers.find_connection("p") is None


async def test_a_silent_producer_is_dropped_and_its_connection_closed() -> None:
    producers = ProducerGroups()
    silent, lively = FakeConnection(1), FakeConnection(2)
    producers.register("g", client(silent, "silent", 0))
    producers.register("g", client(lively, "lively", 0))
    producers.register("g", client(lively, "lively", 50_000))
    list(producers.expire(120_000))
    assert not silent.closed
    list(producers.expire(120_001))
    assert silent.closed
    assert not lively.closed
    assert producers.find_connection("silent") is None
    assert [member.client_id for member in producers.all()["g"]] == ["lively"]


async def test_a_silent_client_of_many_groups_is_one_line_of_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A connection is closed for its programs only when the event loop has come round."""
    monkeypatch.setattr(FakeConnection, "close", lambda connection: None)
    producers, consumers = ProducerGroups(), ConsumerGroups(lambda group, connections: None)
    peer = FakeConnection(1)
    for number in range(20):
        producers.register(f"g{number}", client(peer))
        consumers.register(f"g{number}", client(peer), **CONSUMER)
    list(producers.expire(120_001))
    list(consumers.expire(120_001))
    assert [record.getMessage().split()[0] for record in caplog.records] == ["producer", "consumer"]


async def test_a_closed_connection_costs_what_it_announced() -> None:
    producers, closed, other = ProducerGroups(), FakeConnection(1), FakeConnection(2)
    for number in range(30_000):
        producers.register(f"g{number}", client(other, "other"))
    for number in range(1000):
        producers.register(f"g{number}", client(closed, "c"))
    used = time.thread_time()
    for _ in range(100):
        producers.connection_closed(FakeConnection(3))
    producers.connection_closed(closed)
    assert time.thread_time() - used < 0.5  # each visited all groups
    assert producers.find_connection("c") is None
    assert producers.of_connection(closed) == ()
    assert len(producers) == 30_000


async def test_no_client_id_of_a_closed_connection_is_kept() -> None:
    producers, connection = ProducerGroups(), FakeConnection(1)
    for number in range(10):
        producers.register(f"g{number}", client(connection, f"client-{number}"))
    producers.unregister("g3", connection)
    assert producers.find_connection("client-3") is None
    producers.connection_closed(connection)
    assert not producers._by_client_id
