"""`/api/ledger` and `/api/snapshot`: real verdicts, real states."""

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ

from frames_client import raw
from testing_acts import pull_words

from .conftest import Api

PULL, COMMIT = 11, 15


@pytest.fixture
def orders(server: EmbeddedServer, rocketmq: RocketMQ) -> str:
    """Three messages; the group got the first, passed the second, and has not come to the third."""
    topic = rocketmq.topic("orders", queues=1)
    for number in range(3):
        rocketmq.send(topic, str(number), queue_id=0)
    with raw(server.broker_addr) as client:
        client.ask(PULL, topic=topic, **pull_words(0, most=1))
        client.ask(COMMIT, consumerGroup="g", topic=topic, queueId=0, commitOffset=2)
    return topic


def test_a_verdict_has_its_findings_with_their_proof(api: Api, rocketmq: RocketMQ, orders: str) -> None:
    verdict = api.get(f"/api/ledger?topic={orders}&group=g")
    ids = [message.message_id for message in rocketmq.messages(orders)]
    assert (verdict["topic"], verdict["group"]) == (orders, "g")
    assert [finding["message_id"] for finding in verdict["lost"]] == [ids[1]]
    assert [finding["message_id"] for finding in verdict["unread"]] == [ids[2]]
    assert [request["code"] for request in verdict["lost"][0]["requests"]] == [
        "SEND_MESSAGE_V2",
        "UPDATE_CONSUMER_OFFSET",
    ]
    assert (verdict["duplicated"], verdict["out_of_order"], verdict["offset_moved_back"]) == ([], [], [])
    assert api.get("/api/ledger") == [verdict]
    assert api.get("/api/ledger?group=g") == [verdict]
    assert api.get("/api/ledger?group=another") == []


def test_one_message_has_its_history(api: Api, rocketmq: RocketMQ, orders: str) -> None:
    first = rocketmq.messages(orders)[0].message_id
    history = api.get(f"/api/ledger?message={first}")
    assert (history["topic"], history["acknowledged"], history["dead_lettered"]) == (orders, True, None)
    assert history["deliveries"] == [{"group": "g", "client_id": None}]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("topic=ordres&group=g", "topic ordres does not exist; did you mean orders?"),
        ("topic=orders&group=other", "group other never read topic orders; those that did: g"),
        ("message=17", "no message has the id 17"),
    ],
)
def test_what_does_not_exist_is_404(api: Api, orders: str, query: str, words: str) -> None:
    status, answer = api.ask("GET", f"/api/ledger?{query}")
    assert (status, answer["error"]) == (404, words)


def test_a_reset_begins_a_new_ledger(api: Api, orders: str) -> None:
    api.post("/api/reset", {})
    assert api.get("/api/ledger") == []


def test_a_state_is_taken_and_brought_back(api: Api, rocketmq: RocketMQ, orders: str) -> None:
    status, state, headers = api.raw("GET", "/api/snapshot")
    assert (status, headers["content-type"]) == (200, "application/octet-stream")
    rocketmq.send(orders, "later")
    assert api.raw("PUT", "/api/snapshot", state)[0] == 200
    assert [message.text for message in rocketmq.messages(orders)] == ["0", "1", "2"]
    assert api.get("/api/ledger") == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda state: state[: len(state) // 2], "the body is cut short or damaged"),
        (lambda state: state[:-100] + bytes(100), "the body is damaged"),
        (lambda state: b"{}", "the body is"),
    ],
)
def test_a_bad_state_is_400_and_changes_nothing(
    api: Api, rocketmq: RocketMQ, orders: str, spoil: object, words: str
) -> None:
    state = api.raw("GET", "/api/snapshot")[1]
    assert callable(spoil)
    status, body, _ = api.raw("PUT", "/api/snapshot", spoil(state))
    assert status == 400
    assert words in body.decode()
    assert len(rocketmq.messages(orders)) == 3
    assert [verdict["group"] for verdict in api.get("/api/ledger")] == ["g"]


@pytest.mark.parametrize("flag", ["9" * 5000, "\u00b2", "-1", ""])
def test_a_pull_with_a_strange_flag_leaves_the_ledger_readable(
    api: Api, server: EmbeddedServer, flag: str
) -> None:
    with raw(server.broker_addr) as client:
        client.ask(PULL, topic="t", consumerGroup="g", sysFlag=flag)
    assert api.get("/api/ledger") == []
    assert api.ask("POST", "/api/reset")[0] == 200
