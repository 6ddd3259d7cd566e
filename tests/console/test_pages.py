"""Lists of any length come in pages of limited size, and none of them holds the loop."""

import asyncio
import json
import re
import zlib
from types import SimpleNamespace
from typing import Any

import pytest
from pocketmq.console.broker_values import BODY_BYTES
from pocketmq.console.cluster_views import topics
from pocketmq.console.pages import PAGE_BYTES, Reading
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.testing import EmbeddedServer, RocketMQ

from raw_peer import SEND_MESSAGE, Peer, pull_fields, request, send_fields

from .conftest import Api
from .turns import MOST_SECONDS, turns_of


def pages(api: Api, path: str) -> list[list[Any]]:
    """The list at `path` and all behind it."""
    found = []
    while path:
        status, body, headers = api.raw("GET", path)
        assert status == 200, body
        found.append(json.loads(body))
        link = re.fullmatch(r'<(.*)>; rel="next"', headers.get("link", ""))
        path = link[1] if link else ""
    return found


def test_messages_are_read_page_by_page_each_once_and_in_order(api: Api, rocketmq: RocketMQ) -> None:
    rocketmq.topic("orders", queues=3)
    for number in range(50):
        rocketmq.send("orders", str(number), queue_id=number % 3)
    for words in ("", "&queue=1", "&from_ms=1", "&offset=4"):
        whole = api.get(f"/api/topics/orders/messages?limit=1000{words}")
        found = pages(api, f"/api/topics/orders/messages?limit=7{words}")
        assert [len(page) for page in found[:-1]] == [7] * (len(found) - 1)
        assert [one for page in found for one in page] == whole
        assert [one["store_timestamp"] for one in whole] == sorted(one["store_timestamp"] for one in whole)
    assert len(api.get("/api/topics/orders/messages?queue=1&offset=4")) == 13


def test_a_page_of_messages_has_a_limited_size_and_one_message_at_least(
    api: Api, server: EmbeddedServer, rocketmq: RocketMQ
) -> None:
    rocketmq.topic("fat", queues=1)
    for _ in range(8):
        rocketmq.send("fat", b"\x00" * 400_000, keys="k")
    with turns_of(server) as turns:
        found = pages(api, "/api/topics/fat/messages")
        by_key = pages(api, "/api/topics/fat/messages?key=k")
    assert [len(page) for page in found] == [len(page) for page in by_key] == [1] * 8
    assert turns.longest < MOST_SECONDS


def test_a_page_ends_at_its_size(api: Api, rocketmq: RocketMQ) -> None:
    rocketmq.topic("fat", queues=1)
    for _ in range(30):
        rocketmq.send("fat", "x" * 100_000)
    sizes = [len(json.dumps(page)) for page in pages(api, "/api/topics/fat/messages")]
    assert len(sizes) > 5
    assert max(sizes) < 1.5 * PAGE_BYTES


@pytest.mark.parametrize("after", ["1", "1-2", "a-b-c", "1-2-3-4", "1-1-99999999999999999999"])
def test_a_place_that_no_page_named_is_400(api: Api, rocketmq: RocketMQ, after: str) -> None:
    rocketmq.topic("orders")
    assert api.ask("GET", f"/api/topics/orders/messages?after={after}")[0] == 400


def test_a_body_that_cannot_be_shown_is_one_entry_with_an_error(
    api: Api, server: EmbeddedServer, rocketmq: RocketMQ
) -> None:
    rocketmq.topic("orders", queues=1)
    rocketmq.send("orders", "good")
    with Peer(int(server.broker_addr.rpartition(":")[2])) as peer:
        for sys_flag in (1, 0x101, 0x201, 0x701):
            peer.call(SEND_MESSAGE, send_fields("orders", sysFlag=sys_flag), b"not compressed")
    rocketmq.send("orders", "x" * 100)
    found = api.get("/api/topics/orders/messages")
    assert [one["text"] for one in found] == ["good", None, None, None, None, "x" * 100]
    assert ["error" in one for one in found] == [False, True, True, True, True, False]
    assert found[1]["error"].startswith("the body cannot be decompressed: zlib")


def test_a_small_message_with_a_huge_body_is_not_shown(
    api: Api, server: EmbeddedServer, rocketmq: RocketMQ
) -> None:
    rocketmq.topic("orders", queues=1)
    with Peer(int(server.broker_addr.rpartition(":")[2])) as peer:
        for size in (BODY_BYTES, BODY_BYTES + 1):
            peer.call(SEND_MESSAGE, send_fields("orders", sysFlag=1), zlib.compress(bytes(size)))
    (shown,), (hidden,) = pages(api, "/api/topics/orders/messages")
    assert len(shown["text"]) == BODY_BYTES
    assert (hidden["text"], hidden["body_base64"]) == (None, None)
    assert "zlib: more than 4194304 bytes when decompressed" in hidden["error"]


def test_topics_and_groups_are_read_page_by_page_without_holding_the_loop(
    api: Api, server: EmbeddedServer
) -> None:
    broker = server.node.broker
    names = [f"name-{number:05}" for number in range(1500)]

    def fill() -> None:
        for name in names:
            broker.topics.update(TopicConfig(topic_name=name))
            broker.offsets.commit(name, name, 0, 1)

    server.call(fill)
    with turns_of(server) as turns:
        for kind in ("topics", "groups"):
            found = pages(api, f"/api/{kind}?limit=500")
            assert [len(page) for page in found] == [500] * 3
            assert [one["name"] for page in found for one in page] == names
            assert [one["name"] for one in api.get(f"/api/{kind}?after=name-00041&limit=2")] == names[42:44]
        assert api.raw("GET", "/metrics")[0] == 200
    assert turns.longest < MOST_SECONDS


def test_making_a_topic_that_exists_is_refused_and_changing_it_changes_what_is_given(api: Api) -> None:
    made = api.post("/api/topics", {"name": "orders", "queues": 2, "perm": 4})
    status, problem = api.ask("POST", "/api/topics", {"name": "orders"})
    assert (status, problem["error"]) == (409, "topic orders exists: PUT /api/topics/orders changes it")
    assert api.get("/api/topics/orders") == made
    for change, seen in (
        ({"order": True}, (2, 4, True)),
        ({"queues": 3}, (3, 4, True)),
        ({"perm": 6}, (3, 6, True)),
    ):
        changed = api.ask("PUT", "/api/topics/orders", change)[1]
        assert (changed["queues"], changed["perm"], changed["order"]) == seen
    assert api.ask("PUT", "/api/topics/none", {"queues": 1})[0] == 404
    assert api.ask("PUT", "/api/topics/TBW102", {"queues": 1})[0] == 400
    assert api.ask("PUT", "/api/topics/orders", {"perm": 7})[0] == 400


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"properties": {"a\u0001b": "c"}}, "must not contain U+0001"),
        ({"properties": {"a": "b\u0002c"}}, "must not contain U+0001"),
        ({"properties": {"UNIQ_KEY": "1"}}, "is used by system"),
        ({"tags": "a\u0002"}, "must not contain U+0001"),
        ({"keys": ["a\u0001"]}, "must not contain U+0001"),
        ({"properties": [1]}, "properties: Expected `object | null`"),
        ({"properties": {"a": 1}}, "properties: Expected `str`, got `int`"),
        ({"delay_ms": -1}, "delay_ms: Expected `int` >= 0"),
        ({"queue_id": 7}, "has no queue 7"),
        ({"keys": ["k"] * 20_000}, "keys is too long"),
        ({"delay_ms": 10**18}, "delay_ms is too large"),
        ({"colour": "red"}, "unknown field `colour`"),
        ({"queue_id": [[]]}, "queue_id: Expected `int | null`"),
    ],
)
def test_a_message_that_would_be_stored_wrongly_is_refused(
    api: Api, rocketmq: RocketMQ, message: dict[str, Any], words: str
) -> None:
    rocketmq.topic("orders", queues=1)
    status, problem = api.ask("POST", "/api/topics/orders/messages", {"text": "x", **message})
    assert (status, words in problem["error"]) == (400, True), problem
    assert rocketmq.messages("orders") == []


def test_requests_are_read_page_by_page_and_in_turns(
    api: Api, server: EmbeddedServer, rocketmq: RocketMQ
) -> None:
    rocketmq.topic("orders", queues=1)
    for number in range(6):
        rocketmq.send("orders", str(number) * 700_000)
    sends = "/api/requests?code=SEND_MESSAGE_V2&topic=orders"
    with turns_of(server) as turns:
        found = pages(api, sends)
        newest = api.get(f"{sends}&last=3")
    assert [[one["text"][0] for one in page] for page in found] == [[str(number)] for number in range(6)]
    assert [one["text"][0] for one in newest] == ["5"]
    assert turns.longest < MOST_SECONDS


def test_a_full_log_is_searched_in_turns(api: Api, server: EmbeddedServer) -> None:
    with Peer(int(server.broker_addr.rpartition(":")[2])) as peer:
        one = request(34, {}, b"", flag=2)
        for _ in range(60):
            peer.say(one * 1000)
        peer.call(34)
    with turns_of(server) as turns:
        assert api.get("/api/requests?topic=none") == []
        assert len(api.get("/api/requests?oneway=true&limit=10000")) > 1000
    assert turns.longest < MOST_SECONDS


def test_verdicts_are_read_page_by_page_and_in_turns(
    api: Api, server: EmbeddedServer, rocketmq: RocketMQ
) -> None:
    rocketmq.topic("orders", queues=1)
    with Peer(int(server.broker_addr.rpartition(":")[2])) as peer:
        for number in range(3000):
            peer.say(
                request(
                    SEND_MESSAGE, send_fields("orders", properties=f"UNIQ_KEY\x01{number}\x02"), b"x", flag=2
                )
            )
        for group in range(20):
            fields = {"topic": "orders", "consumerGroup": f"g{group:02}", "queueId": 0, "commitOffset": 0}
            peer.call(11, pull_fields("orders", consumerGroup=f"g{group:02}", maxMsgNums=1))
            peer.call(15, fields)
            peer.call(15, {**fields, "commitOffset": 2000})
    with turns_of(server) as turns:
        found = pages(api, "/api/ledger?limit=7")
        history = api.get("/api/ledger?message=2999")
        one = api.get("/api/ledger?topic=orders&group=g19")
    assert [len(page) for page in found] == [7, 7, 6]
    assert found[-1][-1] == one
    assert [verdict["group"] for page in found for verdict in page] == [f"g{group:02}" for group in range(20)]
    assert (len(one["lost"]), one["counts"]["lost"], one["counts"]["unread"]) == (100, 1999, 1000)
    assert history["topic"] == "orders"
    assert turns.longest < MOST_SECONDS


def test_rules_are_read_page_by_page_with_their_newest_hits(
    api: Api, server: EmbeddedServer, rocketmq: RocketMQ
) -> None:
    rocketmq.topic("orders", queues=1)
    for _ in range(5):
        api.post("/api/faults", {"effect": "delay", "code": "SEND_MESSAGE_V2", "seconds": 0, "times": None})
    for number in range(150):
        rocketmq.send("orders", str(number))
    found = pages(api, "/api/faults?limit=2")
    assert [len(page) for page in found] == [2, 2, 1]
    first = found[0][0]
    assert (first["hit_count"], len(first["hits"]), first["hits"][-1]["text"]) == (150, 100, "149")


def test_rules_are_limited(api: Api, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketmq.testing.server.stand_in_views.MAX_RULES", 2)
    for expected in (201, 201, 400):
        assert api.ask("POST", "/api/faults", {"effect": "refuse", "code": "GET_MAX_OFFSET"})[0] == expected


def test_topics_may_change_while_a_list_waits_for_another() -> None:
    """One list is read at a time: the names are those of its turn."""
    known = {"early": None}
    table = SimpleNamespace(topics=known, is_system_topic=lambda name: True)
    reading = Reading()
    call = SimpleNamespace(broker=SimpleNamespace(topics=table), given={}, reading=reading, request=None)

    async def listed_while_another_is_read() -> bytes:
        async with reading:
            waiting = asyncio.create_task(topics(call))  # type: ignore[arg-type]
            await asyncio.sleep(0)
            known["late"] = None
        return bytes((await waiting).body)

    assert asyncio.run(listed_while_another_is_read()) == b"[]"
