"""Outstanding pop receipts of one broker are completed by the other on the same store: 5.5.0 and ours, both ways.

The first broker delivers messages, gets some acks and one change of invisible time, and stops. The second delivers
again exactly the messages without an ack or a change, each once, with its tries counted.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.conftest import make_server
from conformance.on_demand import ON_DEMAND
from conformance.servers.namespaces import Namespace
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server
from conformance.waiting.pop_client import SET_MODE, ack, change_invisible, pop, pop_until, popped

TOPIC, GROUP, ORDERED = "Handed", "Hands", "OrderedHands"
INVISIBLE_MS = 12_000
ORDERED_INVISIBLE_MS = 240_000
"""Longer than a stop, a start and all in between take on a busy machine: to the end its queue is blocked."""
FILES = {"mappedFileSizeCommitLog": 1 << 20, "mappedFileSizeConsumeQueue": 6000, "maxHashSlotNum": 1000}
FILES |= {"maxIndexNum": 4000, "mappedFileSizeTimerLog": 1 << 20}
"""The sizes of files have to be the same for both brokers of a store."""
SAVED_SECONDS = 12
"""A killed broker leaves what the last saving of its tables knew; the slowest are saved each 10 s."""


@pytest.fixture
def namespace(peers: None) -> Iterator[Namespace]:
    with Namespace() as made:
        yield made


@ON_DEMAND
@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize(
    ("first_side", "second_side"), [("official-5.5", "ours"), ("ours", "official-5.5"), ("ours", "ours")]
)
def test_the_next_broker_completes_outstanding_receipts(
    namespace: Namespace, tmp_path: Path, first_side: str, second_side: str, end: str
) -> None:
    first = make_server(first_side, tmp_path, namespace=namespace, broker_conf=FILES)
    first.start()
    try:
        expected = begin(first)
        if end == "kill":
            time.sleep(SAVED_SECONDS)
        getattr(first, end)()
        second = make_server(second_side, tmp_path, namespace=namespace, broker_conf=FILES)
        first = second
        second.start()
        finish(second, expected)
    finally:
        first.close()


def begin(server: Server) -> list[str]:
    """Pop ten messages, acknowledge some; returns the bodies that must be delivered again."""
    with RawClient(server) as client:
        client.update_topic(TOPIC, 2)
        for group in (GROUP, ORDERED):
            client.update_group(group)
        for number in range(10):
            client.send(TOPIC, number % 2, f"m{number}".encode(), {"TAGS": "A"})
        for queue_id in (0, 1):
            client.settle(TOPIC, queue_id, 5)
        messages = popped(pop(client, GROUP, TOPIC, invisibleTime=INVISIBLE_MS), GROUP, TOPIC)
        assert len(messages) == 10
        for message in messages[:4]:
            assert ack(client, GROUP, message).code == 0
        assert change_invisible(client, GROUP, messages[4], INVISIBLE_MS + 2000).code == 0
        attempt = {"order": True, "queueId": 0, "attemptId": "a", "maxMsgNums": 3}
        in_order = pop(client, ORDERED, TOPIC, **attempt, invisibleTime=ORDERED_INVISIBLE_MS)
        first, *_ = popped(in_order, ORDERED, TOPIC)
        assert ack(client, ORDERED, first).code == 0
        mode = {"topic": TOPIC, "consumerGroup": GROUP, "mode": "POP", "popShareQueueNum": 1}
        assert client.call(SET_MODE, json.dumps(mode).encode()).code == 0
        return sorted(message.body for message in messages[4:])


def finish(server: Server, expected: list[str]) -> None:
    with RawClient(server) as client:
        again = pop_until(client, GROUP, TOPIC, len(expected), 60)
        assert sorted(message.body for message in again) == expected
        assert {message.reconsume_times for message in again} == {1}
        assert {message.topic for message in again} == {f"%RETRY%{GROUP}_{TOPIC}"}
        for message in again:
            assert ack(client, GROUP, message).code == 0
        assert pop(client, GROUP, TOPIC, pollTime=4000).code == 210
        assert client.call(14, consumerGroup=ORDERED, topic=TOPIC, queueId=0).fields["offset"] == "1"
        blocked = pop(client, ORDERED, TOPIC, order=True, queueId=0, attemptId="b")
        assert blocked.code == 210
        same = pop(client, ORDERED, TOPIC, order=True, queueId=0, attemptId="a", maxMsgNums=2)
        assert [message.body for message in popped(same, ORDERED, TOPIC)] == ["m2", "m4"]
        modes = json.loads(client.call(402).body)["messageRequestModeMap"]
        assert modes[TOPIC][GROUP]["popShareQueueNum"] == 1
