"""The official examples of transactions, request-reply and timed messages, and what the broker holds after them.

TransactionListenerImpl first answers UNKNOW for every message; to checks it answers UNKNOW, COMMIT and ROLLBACK in
turn: of ten messages three are committed, three rolled back, and four stay open. POCKETMQ_INTEROP_ALL=1 adds the
official servers.
"""

import re
from collections.abc import Iterator

import pytest

from conformance.conftest import make_server
from conformance.examples.printed import sent
from conformance.examples.stage import Stage
from conformance.on_demand import chosen
from conformance.servers.raw_client import RawClient, wait_until
from conformance.servers.server import Server
from conformance.waiting.waiting_messages import CONF, HALF_TOPIC, messages

WORLDS = chosen(
    [("ours", "4.9", "4.9"), ("ours", "5", "5.5")], [("official-4.9", "", "4.9"), ("official-5.5", "", "5.5")]
)

REPLY = b"reply message contents."

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", params=WORLDS, ids=lambda world: f"{world[0]}-{world[2]}")
def world(
    request: pytest.FixtureRequest, peers: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Stage]]:
    side, emulate, client = request.param
    options = {"emulate": emulate} if emulate else {}
    home = tmp_path_factory.mktemp(f"waiting-{side}-{client}")
    with make_server(side, home, broker_conf=CONF, **options) as server:
        yield server, Stage(server.programs, client, home / "stage")


def test_transactions_end_as_their_listener_answers(world: tuple[Server, Stage]) -> None:
    server, stage = world
    topic = "TopicTest1234"
    with RawClient(server) as client:
        client.update_topic(topic, 4)
        stage.play("transaction.TransactionProducer").wait_for("sendStatus=SEND_OK", 10)

        def committed() -> list[bytes]:
            return [message.body for queue in range(4) for message in messages(client, topic, queue)]

        wait_until(lambda: len(committed()) >= 3, "the checks committed too little", 90)
        wait_until(lambda: open_checks(client) >= 2, "the open ones are asked about again", 90)
        assert len(committed()) == 3
        assert len(set(committed())) == 3


def open_checks(client: RawClient) -> int:
    """The largest number of checks of one message."""
    halves = messages(client, HALF_TOPIC, 0)
    return max(int(half.properties.get("TRANSACTION_CHECK_TIMES", "0")) for half in halves)


def test_requests_are_replied_to(world: tuple[Server, Stage]) -> None:
    server, stage = world
    with RawClient(server) as client:
        client.update_topic("RequestTopic", 4)
        client.update_group("please_rename_unique_group_name")
        replier = stage.play("rpc.ResponseConsumer")
        replier.wait_for("Consumer Started")
        output = stage.run("rpc.RequestProducer")
        assert re.search(r"request to <RequestTopic> cost: \d+ replyMessage: ", output), output
        assert ", ".join(map(str, REPLY)) in output, "the body, as Java prints bytes"
        stage.play("rpc.AsyncRequestProducer").wait_for(r"request to <RequestTopic> cost: \d+ replyMessage")
        client.settle("DefaultCluster_REPLY_TOPIC", 0, 2)  # a reply is pushed first and then stored
        stored = messages(client, "DefaultCluster_REPLY_TOPIC", 0)
        assert [message.body for message in stored] == [REPLY] * 2


def test_timed_messages_reach_their_consumer_in_time(world: tuple[Server, Stage]) -> None:
    server, stage = world
    if server.emulates == "4.9":
        pytest.skip("4.9 has no timed messages")
    with RawClient(server) as client:
        client.update_topic("TimerTopic", 4)
        consumer = stage.play("schedule.TimerMessageConsumer")
        results = sent(stage.run("schedule.TimerMessageProducer"))
        assert len(results) == 10
        lines = consumer.wait_for(r"Receive message\[msgId=\S+ \d+ +ms later\]", 10, timeout=60)
        late_ms = [int(text) for text in re.findall(r"(-?\d+) +ms later", lines)]
        assert len(late_ms) == 10
        seen = [message for queue in range(4) for message in messages(client, "TimerTopic", queue)]
        assert len(seen) == 10
        for message in seen:
            due_ms, came_ms = (
                int(message.properties[name]) for name in ("TIMER_DELIVER_MS", "TIMER_DEQUEUE_MS")
            )
            assert due_ms <= came_ms
