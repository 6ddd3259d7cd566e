"""Virtual time, chance, verdicts and the HTTP port of a cluster: one for all of its brokers."""

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.testing import ClusterBroker, NotRunningError, RocketMQCluster, TestingError

from frames_client import Raw, raw
from testing_acts import SEND, pull_words, send_request
from waiting import wait_until

PULL, COMMIT = 11, 15


@pytest.fixture
def cluster() -> Iterator[RocketMQCluster]:
    with RocketMQCluster(brokers=2, emulate="5", virtual_time=True, seed=7, admin_port=0) as cluster:
        cluster.grow("orders", queues=1)
        yield cluster


def send(cluster: RocketMQCluster, broker: str, body: str, **properties: str) -> None:
    """To queue 0."""
    text = encode_properties_text({"UNIQ_KEY": f"{broker}-{body}", **properties})
    with raw(cluster.broker(broker).addr) as client:
        client.send(310, b="orders", i=text, body=body.encode(), **SEND)
        assert client.receive().code == 0


def stored(broker: ClusterBroker) -> int:
    return broker.broker.store.max_offset("orders", 0)


def pull(client: Raw, offset: int, *, most: int = 32) -> None:
    client.ask(PULL, topic="orders", **pull_words(offset, most=most))


def commit(client: Raw, offset: int) -> None:
    words = {"consumerGroup": "g", "topic": "orders", "queueId": 0, "commitOffset": offset}
    assert client.ask(COMMIT, **words).code == 0


def ask(url: str, value: Any = None) -> tuple[int, Any]:
    body = None if value is None else json.dumps(value).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=5) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


# -- time


def test_all_brokers_share_a_clock_that_stands_still(cluster: RocketMQCluster) -> None:
    began = cluster.clock.now_ms()
    send(cluster, "b0", "an hour", DELAY="17")
    send(cluster, "b1", "half an hour", DELAY="16")
    assert [stored(broker) for broker in cluster.brokers] == [0, 0]
    assert cluster.clock.advance_to_next() == began + 1_800_000
    assert [stored(broker) for broker in cluster.brokers] == [0, 1]
    cluster.clock.advance("30m")
    assert [stored(broker) for broker in cluster.brokers] == [1, 1]
    assert {broker.broker.clock.now_ms() for broker in cluster.brokers} == {began + 3_600_000}
    assert cluster.clock.advance_to_next() is None


def test_a_broker_that_was_stopped_has_the_time_of_the_others(cluster: RocketMQCluster) -> None:
    send(cluster, "b0", "an hour", DELAY="17")
    began = cluster.clock.now_ms()
    cluster.broker("b0").stop()
    assert cluster.clock.advance("59m") == began + 59 * 60_000
    assert cluster.clock.advance_to_next() is None
    cluster.broker("b0").start()
    cluster.clock.advance("59s")
    assert stored(cluster.broker("b0")) == 0
    cluster.clock.advance("2s")
    assert stored(cluster.broker("b0")) == 1


def test_timed_messages_of_a_killed_broker_come_after_its_start(cluster: RocketMQCluster) -> None:
    send(cluster, "b0", "two hours", TIMER_DELAY_SEC="7200")
    cluster.clock.advance("1s")
    cluster.broker("b0").kill()
    cluster.clock.advance("3h")
    cluster.broker("b0").start()
    cluster.clock.advance("2s")
    assert stored(cluster.broker("b0")) == 1


def test_time_runs_until_the_cluster_stops(cluster: RocketMQCluster) -> None:
    cluster.clock.run(speed=3600)
    cluster.broker("b1").kill()
    cluster.broker("b1").start()
    cluster.stop()
    with pytest.raises(NotRunningError):
        cluster.clock.now_ms()


def test_a_delay_of_a_rule_outlives_the_broker_that_started_last(cluster: RocketMQCluster) -> None:
    """Its timer is the cluster's own."""
    cluster.faults.delay(code="PULL_MESSAGE", broker="b0", seconds=60)
    with raw(cluster.broker("b0").addr) as client:
        client.send(PULL, topic="orders", **pull_words(0, most=1))
        cluster.requests.wait_for(code="PULL_MESSAGE")
        cluster.broker("b1").stop()
        assert client.is_silent()
        cluster.clock.advance("1m")
        assert client.receive().code == 19


def test_the_walls_time_is_not_moved() -> None:
    with RocketMQCluster(brokers=1) as cluster:
        assert not cluster.clock.is_virtual
        with pytest.raises(TestingError, match="virtual_time=True"):
            cluster.clock.advance("1h")
        with pytest.raises(NotRunningError, match="ledger=True"):
            _ = cluster.ledger
        with pytest.raises(NotRunningError, match="admin_port=0"):
            _ = cluster.admin_url


# -- chance


def test_a_seed_repeats_the_choices_of_every_broker() -> None:
    def chosen() -> list[list[int]]:
        with RocketMQCluster(brokers=2, seed=11) as cluster:
            return [
                [broker.broker.state.random.getrandbits(32) for _ in range(3)] for broker in cluster.brokers
            ]

    first, second = chosen(), chosen()
    assert first == second
    assert first[0] != first[1]


def test_rules_with_a_probability_repeat_with_the_seed() -> None:
    def hits() -> list[bool]:
        with RocketMQCluster(brokers=1, seed=11) as cluster:
            rule = cluster.faults.refuse(
                code="GET_MAX_OFFSET", response="SYSTEM_BUSY", probability=0.5, times=None
            )
            with raw(cluster.broker("b0").addr) as client:
                for _ in range(16):
                    client.ask(30, topic="orders", queueId=0)
            return [request in rule.hits for request in cluster.requests.find(code="GET_MAX_OFFSET")]

    first = hits()
    assert first == hits()
    assert len(set(first)) == 2


# -- verdicts


def test_a_verdict_is_about_the_queues_of_all_brokers(cluster: RocketMQCluster) -> None:
    for broker in ("b0", "b1"):
        for number in range(3):
            send(cluster, broker, str(number))
    with raw(cluster.broker("b0").addr) as client:
        pull(client, 0)
        commit(client, 3)
    with raw(cluster.broker("b1").addr) as client:
        pull(client, 0, most=1)
        commit(client, 2)
    verdict = cluster.ledger.verdict("orders", "g")
    assert [(one.broker, one.queue_offset, one.message_id) for one in verdict.lost] == [("b1", 1, "b1-1")]
    assert [(one.broker, one.queue_offset) for one in verdict.unread] == [("b1", 2)]
    assert verdict.by_queue().keys() == {("b1", 0)}
    assert cluster.ledger.message("b0-1").acknowledged


def test_what_was_found_before_a_kill_is_still_found(cluster: RocketMQCluster) -> None:
    for number in range(3):
        send(cluster, "b0", str(number))
    with raw(cluster.broker("b0").addr) as client:
        pull(client, 0, most=1)
        commit(client, 2)
    cluster.broker("b0").kill()
    cluster.broker("b0").start()
    with raw(cluster.broker("b0").addr) as client:
        pull(client, 0)
        commit(client, 3)
    verdict = cluster.ledger.verdict("orders", "g")
    assert [finding.queue_offset for finding in verdict.duplicated] == [0]
    assert (verdict.lost, verdict.unread) == ([], []), "the second read had it"


def test_what_a_broker_does_while_it_stops_is_in_the_books(cluster: RocketMQCluster) -> None:
    """A held pull is answered with a message that arrived during the stop, and an offset is committed."""
    broker = cluster.broker("b0")
    send(cluster, "b0", "before")

    async def send_and_stop() -> None:
        connection = await broker.node.server.connect(broker.addr)
        sending = asyncio.ensure_future(
            connection.call(send_request("orders", UNIQ_KEY="during"), b"during", timeout_seconds=5)
        )
        await broker.stop_here()
        await sending
        connection.close()

    with raw(broker.addr) as client, raw(broker.addr) as other:
        pull(client, 0)
        client.send(PULL, topic="orders", **pull_words(1, wait_ms=20_000))
        other.ask(COMMIT, consumerGroup="g", topic="orders", queueId=0, commitOffset=1)
        assert cluster.requests.wait_for(code="PULL_MESSAGE", count=2)
        cluster.run(send_and_stop())
        answer = client.receive()
        assert (answer.code, b"during" in bytes(answer.body or b"")) == (0, True)
    broker.start()
    with raw(broker.addr) as client:
        commit(client, 2)
    verdict = cluster.ledger.verdict("orders", "g")
    assert verdict.lost == [], str(verdict)
    assert cluster.requests.count(code="SEND_MESSAGE_V2") == 2
    assert cluster.requests.find(code="PULL_MESSAGE")[1].response == 0


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_nothing_is_a_delivery_once_its_connection_has_ended(cluster: RocketMQCluster, ending: str) -> None:
    broker = cluster.broker("b0")
    send(cluster, "b0", "one")
    with raw(broker.addr) as client:
        pull(client, 0)
        client.send(PULL, topic="orders", **pull_words(1, wait_ms=20_000))
        assert cluster.requests.wait_for(code="PULL_MESSAGE", count=2)
    getattr(broker, ending)()
    broker.start()
    assert len(cluster.ledger.deliveries()) == 1
    assert cluster.requests.find(code="PULL_MESSAGE")[1].response in (None, 19, 20)


def test_a_message_read_from_a_slave_was_delivered() -> None:
    with RocketMQCluster(brokers=1, slaves=1, ledger=True, emulate="5") as cluster:
        cluster.grow("orders", queues=1)
        for number in range(2):
            send(cluster, "b0", str(number))
        cluster.wait_replicated()
        with raw(cluster.broker("b0-1").addr) as client:
            pull(client, 0)
        with raw(cluster.broker("b0").addr) as client:
            pull(client, 2)
            commit(client, 2)
        cluster.ledger.assert_clean("orders", "g")
        with raw(cluster.broker("b0").addr) as client:
            pull(client, 1)
        [again] = cluster.ledger.verdict("orders", "g").duplicated
        assert again.queue_offset == 1


def test_requests_that_arrive_while_a_broker_starts_are_seen() -> None:
    """Clients that wait for a broker are there first: a message they got unseen would count as lost."""
    asked, is_over = [0], threading.Event()

    def ask_early(address: str) -> None:
        while not is_over.is_set():
            try:
                with raw(address) as client:
                    while not is_over.is_set():
                        client.ask(30, topic="early", queueId=0)
                        asked[0] += 1
            except (OSError, EOFError):
                pass  # not there yet

    with RocketMQCluster(brokers=1, ledger=True) as cluster:
        broker = cluster.broker("b0")
        for _ in range(3):
            broker.stop()
            before = cluster.requests.count(topic="early")
            asked[0] = 0
            is_over.clear()
            asking = threading.Thread(target=ask_early, args=(broker.addr,), daemon=True)
            asking.start()
            broker.start()
            wait_until(lambda: asked[0], "the early client is served")
            is_over.set()
            asking.join()
            assert cluster.requests.count(topic="early") - before == asked[0]


# -- the HTTP port


def test_one_port_shows_all_brokers(cluster: RocketMQCluster) -> None:
    send(cluster, "b1", "hello")
    url = cluster.admin_url
    assert [
        ask(f"{url}{path}/api/topics/orders")[1]["messages"] for path in ("", "/brokers/b0", "/brokers/b1")
    ] == [0, 0, 1]
    assert ask(f"{url}/brokers/b9/api/topics") == (
        404,
        {"error": "there is no broker b9", "allowed": ["b0", "b1"]},
    )
    with urllib.request.urlopen(f"{url}/brokers/b1/", timeout=5) as page:
        assert b"page.js" in page.read()


def test_the_port_outlives_its_brokers(cluster: RocketMQCluster) -> None:
    url = cluster.admin_url
    cluster.broker("b0").kill()
    assert ask(f"{url}/brokers/b0/api/topics") == (409, {"error": "broker b0 is not running"})
    assert ask(f"{url}/api/topics")[0] == 200
    cluster.broker("b1").stop()
    assert ask(f"{url}/api/topics") == (409, {"error": "no broker of the cluster is running"})
    cluster.broker("b0").start()
    assert ask(f"{url}/brokers/b0/api/topics")[0] == 200


def test_faults_clock_and_ledger_of_the_port_are_the_clusters(cluster: RocketMQCluster) -> None:
    url = cluster.admin_url
    began = cluster.clock.now_ms()
    assert ask(f"{url}/api/clock/advance", {"by": "2h"}) == (
        200,
        {"virtual": True, "now_ms": began + 7_200_000},
    )
    rule = {"effect": "refuse", "code": "PULL_MESSAGE", "broker": "b1", "response": "SYSTEM_BUSY"}
    assert ask(f"{url}/brokers/b0/api/faults", rule)[0] == 201
    for broker, code in (("b0", 19), ("b1", 2)):
        with raw(cluster.broker(broker).addr) as client:
            assert client.ask(PULL, topic="orders", **pull_words(0, most=1)).code == code
    assert ask(f"{url}/api/faults")[1][0]["hit_count"] == 1
    status, verdict = ask(f"{url}/api/ledger?topic=orders&group=g")
    assert (status, verdict["lost"], verdict["unread"]) == (200, [], [])
    assert ask(f"{url}/api/reset", {})[0] == 409
