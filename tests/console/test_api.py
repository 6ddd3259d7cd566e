"""The API: what each address shows and does, and that looking moves no offset."""

import asyncio
import json
import re
import threading

import pytest
from pocketmq.client import LitePullConsumer, MessageQueue
from pocketmq.testing import EmbeddedServer, RocketMQ

from .conftest import Api


def test_topics_are_made_and_looked_at(api: Api) -> None:
    made = api.post("/api/topics", {"name": "orders", "queues": 2})
    assert (made["name"], made["queues"], made["messages"]) == ("orders", 2, 0)
    assert [topic["name"] for topic in api.get("/api/topics")] == ["orders"]
    assert "TBW102" in [topic["name"] for topic in api.get("/api/topics?all=true")]
    assert api.get("/api/topics/orders") == made


def test_the_page_is_whole_and_needs_nothing_from_outside(api: Api) -> None:
    seen, waiting = set(), {"/"}
    while waiting:
        path = waiting.pop()
        seen.add(path)
        status, body, headers = api.raw("GET", path)
        assert (path, status) == (path, 200)
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        text = body.decode()
        assert re.findall(r"https?://(?!127)", text) == []
        used = re.findall(r'(?:src|href)="([\w.]+)"|from "\./([\w.]+)"', text)
        waiting |= {f"/{one or other}" for one, other in used} - seen
    assert {"/page.css", "/page.js", "/stand_in.js"} <= seen


@pytest.mark.parametrize("path", ["/", "/api/topics", "/api/topics/none", "/metrics", "/openapi.json"])
def test_no_answer_runs_as_another_kind_of_document(api: Api, path: str) -> None:
    """A browser would guess one from what somebody has sent to a topic."""
    _, _, headers = api.raw("GET", path)
    assert headers["x-content-type-options"] == "nosniff"


def test_messages_are_sent_and_found(api: Api, rocketmq: RocketMQ) -> None:
    api.post("/api/topics", {"name": "orders", "queues": 1})
    sent = api.post(
        "/api/topics/orders/messages",
        {"text": "één", "tags": "a", "keys": ["k1", "k2"], "properties": {"p": "v"}, "queue_id": 0},
    )
    api.post("/api/topics/orders/messages", {"body_base64": "/wA="})
    first, second = api.get("/api/topics/orders/messages")
    assert (first["text"], first["tags"], first["keys"]) == ("één", "a", ["k1", "k2"])
    assert (first["message_id"], first["queue_offset"]) == (sent["message_id"], sent["queue_offset"])
    assert first["properties"]["p"] == "v"
    assert (second["text"], second["body_base64"]) == (None, "/wA=")
    for key in ("k2", sent["message_id"]):
        assert [one["message_id"] for one in api.get(f"/api/topics/orders/messages?key={key}")] == [
            sent["message_id"]
        ]
    assert api.get("/api/topics/orders/messages?queue=0&offset=1&limit=5") == [second]
    assert api.get(f"/api/topics/orders/messages?from_ms={second['store_timestamp'] + 1}") == []
    assert [message.body for message in rocketmq.messages("orders")] == ["één".encode(), b"\xff\0"]


async def test_a_group_has_members_subscriptions_offsets_and_lag(server: EmbeddedServer, api: Api) -> None:
    rocketmq_send(server, "orders", 5)
    async with LitePullConsumer("billing", namesrv_addr=server.namesrv_addr, auto_commit=False) as consumer:
        consumer.subscribe("orders")
        read: list[object] = []
        while len(read) < 5:
            read += await consumer.poll(1000)
        await consumer.commit({MessageQueue("orders", "broker-a", 0): 3})
        group = api.get("/api/groups/billing")
        assert [member["language"] for member in group["members"]] == ["PYTHON"]
        assert group["subscriptions"]["orders"] == "*"
        assert group["offsets"]["orders"]["0"] == 3
        assert api.get("/api/groups/billing/lag")["topics"]["orders"] == 2
        assert [one["name"] for one in api.get("/api/groups")] == ["billing"]


async def test_queues_of_a_group_have_their_offset_and_the_member_that_holds_them(
    server: EmbeddedServer, api: Api, rocketmq: RocketMQ
) -> None:
    rocketmq.topic("orders", queues=2)
    rocketmq.send("orders", "one", queue_id=0)
    assert api.ask("GET", "/api/groups/billing/queues") == (404, {"error": "there is no group billing"})
    async with LitePullConsumer("billing", namesrv_addr=server.namesrv_addr, auto_commit=False) as consumer:
        consumer.subscribe("orders")
        while not await consumer.poll(1000):
            pass
        await consumer.commit({MessageQueue("orders", "broker-a", 0): 1})
        (member,) = rocketmq.members("billing")
        queues = await asyncio.to_thread(api.get, "/api/groups/billing/queues")
    by_id = {queue["queue_id"]: queue for queue in queues if queue["topic"] == "orders"}
    assert {queue_id: queue["held_by"] for queue_id, queue in by_id.items()} == {
        0: [member.client_id],
        1: [member.client_id],
    }
    assert (by_id[0]["offset"], by_id[0]["max_offset"], by_id[0]["lag"]) == (1, 1, 0)
    assert (by_id[1]["max_offset"], by_id[1]["lag"]) == (0, 0)


async def test_a_member_that_does_not_answer_holds_nothing_that_is_known(
    server: EmbeddedServer, api: Api, rocketmq: RocketMQ
) -> None:
    rocketmq.topic("orders", queues=1)
    async with LitePullConsumer("billing", namesrv_addr=server.namesrv_addr, auto_commit=False) as consumer:
        consumer.subscribe("orders")
        await rocketmq.aio.wait_members("billing", 1)
        # Asked from the consumer's own loop, which stands still meanwhile.
        queues = api.get("/api/groups/billing/queues")
    assert [queue["held_by"] for queue in queues if queue["topic"] == "orders"] == [[]]


def rocketmq_send(server: EmbeddedServer, topic: str, count: int) -> None:
    rocketmq = RocketMQ(server)
    rocketmq.topic(topic, queues=1)
    for number in range(count):
        rocketmq.send(topic, str(number))


def test_explain_says_where_a_group_starts_and_why(server: EmbeddedServer, api: Api) -> None:
    rocketmq_send(server, "orders", 2)
    (verdict,) = api.get("/api/explain?group=newcomer&topic=orders")
    assert (verdict["queue_id"], verdict["offset"], verdict["rule"]) == (0, 0, "B4")
    assert "in memory" in verdict["because"]


def test_a_fault_is_added_hit_and_removed(server: EmbeddedServer, api: Api) -> None:
    rocketmq_send(server, "orders", 1)
    rule = api.post(
        "/api/faults",
        {"effect": "refuse", "code": "SEND_MESSAGE_V2", "response": "SYSTEM_BUSY", "remark": "full"},
    )
    status, problem = api.ask("POST", "/api/topics/orders/messages", {"text": "x"})
    assert (status, problem["error"]) == (400, "the broker refuses: SYSTEM_BUSY, full")
    (shown,) = api.get("/api/faults")
    assert (shown["id"], shown["hit_count"]) == (rule["id"], 1)
    assert shown["hits"][0]["code"] == "SEND_MESSAGE_V2"
    assert api.ask("DELETE", f"/api/faults/{rule['id']}") == (200, [])
    api.post("/api/topics/orders/messages", {"text": "x"})


def test_requests_are_searched_by_the_words_of_python(server: EmbeddedServer, api: Api) -> None:
    rocketmq_send(server, "orders", 2)
    first, second = api.get("/api/requests?code=SEND_MESSAGE_V2&topic=orders&response=SUCCESS")
    assert (first["code"], first["topic"], first["response"]) == ("SEND_MESSAGE_V2", "orders", "SUCCESS")
    found = api.get(f"/api/requests?code=SEND_MESSAGE_V2&topic=orders&after={first['id']}")
    assert [one["id"] for one in found] == [second["id"]]


def test_the_newest_requests_are_asked_for_by_their_number(server: EmbeddedServer, api: Api) -> None:
    rocketmq_send(server, "orders", 4)
    sends = "/api/requests?code=SEND_MESSAGE_V2&topic=orders"
    ids = [one["id"] for one in api.get(sends)]
    assert len(ids) == 4
    for words, expected in (
        ("last=2", ids[2:]),
        (f"last=2&after={ids[2]}", ids[3:]),
        ("last=0", []),
        ("last=9", ids),
    ):
        assert [one["id"] for one in api.get(f"{sends}&{words}")] == expected, words
    assert api.ask("GET", f"{sends}&last=2&limit=2") == (
        400,
        {"error": "give limit (the oldest) or last (the newest), not both", "allowed": ["limit", "last"]},
    )


def test_the_stream_has_each_request_and_its_reply(server: EmbeddedServer, api: Api) -> None:
    rocketmq_send(server, "orders", 1)
    with api.open("GET /api/requests/stream?code=SEND_MESSAGE_V2") as connection:
        seen = b""
        while b"as they arrive" not in seen:
            seen += connection.recv(65536)
        RocketMQ(server).send("orders", "streamed")
        while b'"response":"SUCCESS"' not in seen:
            seen += connection.recv(65536)
    values = [json.loads(text) for text in re.findall(rb"data: (\{.*?\})\n", seen)]
    assert {value["topic"] for value in values} == {"orders"}
    assert values[-1]["text"] == "streamed"


def test_a_server_with_open_streams_stops_at_once_and_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    with (
        EmbeddedServer(admin_port=0) as own,
        Api(own.admin_url).open("GET /api/requests/stream") as connection,
    ):
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        ending = threading.Thread(target=own.stop)
        ending.start()
        ending.join(timeout=2)
        assert not ending.is_alive()
    assert [record for record in caplog.records if record.exc_info] == []


def test_virtual_time_is_moved() -> None:
    with EmbeddedServer(admin_port=0, virtual_time=True) as server:
        api, rocketmq = Api(server.admin_url), RocketMQ(server)
        rocketmq.topic("orders", queues=1)
        rocketmq.send("orders", "later", delay_level=18)
        before = api.get("/api/clock")
        assert before["virtual"] is True
        after = api.post("/api/clock/advance", {"by": "2h"})
        assert after["now_ms"] - before["now_ms"] == 7_200_000
        assert [one["text"] for one in api.get("/api/topics/orders/messages")] == ["later"]
        status, problem = api.ask("POST", "/api/clock/advance", {"by": "-1s"})
        assert (status, "-1s" in problem["error"]) == (400, True)
        assert api.post("/api/clock/advance", {"to_next": True})["virtual"] is True


def test_a_real_clock_is_not_moved(api: Api) -> None:
    assert api.get("/api/clock")["virtual"] is False
    status, problem = api.ask("POST", "/api/clock/advance", {"by": "2h"})
    assert (status, "virtual" in problem["error"]) == (409, True)


def test_reset_forgets_everything(server: EmbeddedServer, api: Api) -> None:
    rocketmq_send(server, "orders", 1)
    api.post("/api/faults", {"effect": "refuse"})
    api.post("/api/reset", {})
    assert api.get("/api/topics") == api.get("/api/faults") == []
    assert api.get("/api/requests?code=SEND_MESSAGE_V2") == []


def test_metrics_have_the_official_names_and_labels(server: EmbeddedServer, api: Api) -> None:
    rocketmq_send(server, "orders", 3)
    status, body, headers = api.raw("GET", "/metrics")
    assert (status, headers["content-type"].split(";")[0]) == (200, "text/plain")
    base = 'cluster="DefaultCluster",is_system="false",message_type="normal"'
    labels = f'{base},node_id="broker-a",node_type="broker",topic="orders"'
    assert f"rocketmq_messages_in_total{{{labels}}} 3.0" in body.decode()


def test_health_and_description(api: Api) -> None:
    assert api.get("/healthz") == api.get("/readyz") == {"status": "up"}
    paths = api.get("/openapi.json")["paths"]
    assert {"get", "post", "delete"} == set(paths["/api/faults"])


def test_every_address_of_the_description_answers_as_it_says(api: Api) -> None:
    """Each described method exists, each other one is refused with 405 and the names of those."""
    for path, methods in api.get("/openapi.json")["paths"].items():
        if path.endswith("/stream"):
            continue
        address = re.sub(r"\{\w+\}", "none", path)
        status, problem = api.ask("PATCH", address)
        assert status == 405, path
        allowed = {method.lower() for method in problem.get("allowed", [])}
        assert allowed in (set(methods), set()), path


@pytest.mark.parametrize(
    "path",
    [
        *("/api/topics/none", "/api/topics/none/messages", "/api/groups/none", "/api/groups/none/lag"),
        *("/api/explain?group=g&topic=none", "/nothing", "/api/nothing", "/../pyproject.toml", "/page/x"),
    ],
)
def test_what_does_not_exist_is_404(api: Api, path: str) -> None:
    status, body, _ = api.raw("GET", path)
    assert (status, set(json.loads(body))) == (404, {"error"})
