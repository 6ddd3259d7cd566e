"""The next broker on the same store completes the half messages, timed messages and pops of the one before.

The first broker stores half messages, of which two are ended and one stays open, and timed messages, of which one is
delivered; of ten messages popped it gets some acks and one change of invisible time. Then it is stopped or killed. The
second checks only the open half message at a producer and commits it. It delivers each remaining timed message once: an
overdue one at once, the others at their time, the recalled one never; and of the popped ones exactly those without an
ack, each once, with its tries counted.
"""

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from pocketmq.protocol.message.topics import OP_HALF_TOPIC

from conformance.conftest import make_server
from conformance.examples.stored import stored
from conformance.on_demand import ON_DEMAND
from conformance.servers.namespaces import Namespace
from conformance.servers.raw_client import RawClient, wait_until
from conformance.servers.remoting import Reply
from conformance.servers.server import Server
from conformance.waiting.pop_client import GET_MODES, SET_MODE, ack, change_invisible, pop, pop_until, popped
from conformance.waiting.producer_peer import CHECK_TRANSACTION_STATE, ProducerPeer
from conformance.waiting.waiting_messages import (
    COMMIT,
    CONF,
    GROUP,
    ROLLBACK,
    end,
    send_half,
    send_timed,
    wait_for,
)

RECALL = 370
LATE_MS, DUE_MS = 20_000, 55_000
"""From the sends on: the first broker ends before the earlier time, the second is ready long before the later one."""
SETTLED_S = {"stop": 3.0, "kill": 12.0}
"""Enough for what a broker saves by itself (most each second, the slowest each 10 s), so that a kill loses nothing."""
TOPIC, TIMED, POPPED = "HandedOver", "HandedOverTimed", "HandedOverPopped"
POPPERS, ORDERED = "Hands", "OrderedHands"
INVISIBLE_MS, ORDERED_INVISIBLE_MS = 30_000, 240_000
"""The later is longer than all takes on a busy machine: to the end its queue is blocked."""
STORE_CONF = {**CONF, "flushConsumerOffsetInterval": 1000, "transactionCheckInterval": 1500}

Pair = tuple[str, str, str]
"""Who leaves, how it ends, who finishes."""
AT_ONCE = 3
RUN_SECONDS = 600
PAIRS: list[Pair] = [
    ("official-5.5", "kill", "ours-5.5"),
    ("ours-5.5", "stop", "official-5.5"),
    ("official-4.9", "kill", "ours-4.9"),
    ("ours-4.9", "stop", "official-4.9"),
    ("official-5.5", "stop", "ours-5.5"),
    ("ours-5.5", "kill", "official-5.5"),
    ("ours-5.5", "kill", "ours-5.5"),
    ("ours-5.5", "stop", "ours-5.5"),
]


@pytest.fixture(scope="module")
def runs(peers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Pair, Future[None]]]:
    """All pairs, some side by side: most of their time is waiting."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {pair: pool.submit(hand_over, pair, tmp_path_factory.mktemp("-".join(pair))) for pair in PAIRS}


def leave_waiting(client: RawClient) -> int:
    """Send some of each kind; returns when the last timed message is due, in ms."""
    client.update_topic(TOPIC, 4)
    client.update_topic(TIMED, 4)
    halves = {body: send_half(client, TOPIC, body, KEYS="k") for body in (b"committed", b"open", b"no")}
    assert end(client, halves[b"committed"], COMMIT).code == 0
    assert end(client, halves[b"no"], ROLLBACK).code == 0
    # 5.5.0 records ends in batches, every 3 s: a stop before that loses them too, and the next broker checks again.
    wait_until(lambda: client.max_offset(OP_HALF_TOPIC, 0) > 0, "no end of a half message was ever noted")
    if client.server.emulates == "4.9":
        return 0
    now_ms = int(time.time() * 1000)
    for body, delay_ms in ((b"came", 1000), (b"late", LATE_MS), (b"due", DUE_MS), (b"gone", DUE_MS)):
        reply = send_timed(client, TIMED, body, TIMER_DELIVER_MS=str(now_ms + delay_ms))
    recalled = client.call(
        RECALL, producerGroup=GROUP, topic=TIMED, recallHandle=reply.fields["recallHandle"]
    )
    assert recalled.code == 0
    wait_for(client, TIMED, 1)
    return now_ms + DUE_MS


def leave_popped(client: RawClient) -> list[str]:
    """Pop ten messages, acknowledge some; returns the bodies that must be delivered again."""
    client.update_topic(POPPED, 2)
    for group in (POPPERS, ORDERED):
        client.update_group(group)
    for number in range(10):
        client.send(POPPED, number % 2, f"m{number}".encode(), {"TAGS": "A"})
    for queue_id in (0, 1):
        client.settle(POPPED, queue_id, 5)
    messages = popped(pop(client, POPPERS, POPPED, invisibleTime=INVISIBLE_MS), POPPERS, POPPED)
    assert len(messages) == 10
    for message in messages[:4]:
        assert ack(client, POPPERS, message).code == 0
    assert change_invisible(client, POPPERS, messages[4], INVISIBLE_MS + 2000).code == 0
    attempt = {"order": True, "queueId": 0, "attemptId": "a", "maxMsgNums": 3}
    in_order = pop(client, ORDERED, POPPED, **attempt, invisibleTime=ORDERED_INVISIBLE_MS)
    first, *_ = popped(in_order, ORDERED, POPPED)
    assert ack(client, ORDERED, first).code == 0
    mode = {"topic": POPPED, "consumerGroup": POPPERS, "mode": "POP", "popShareQueueNum": 1}
    assert client.call(SET_MODE, json.dumps(mode).encode()).code == 0
    return sorted(message.body for message in messages[4:])


def finish_popped(client: RawClient, expected: list[str]) -> None:
    again = pop_until(client, POPPERS, POPPED, len(expected), 60)
    assert sorted(message.body for message in again) == expected
    assert {message.reconsume_times for message in again} == {1}
    assert {message.topic for message in again} == {f"%RETRY%{POPPERS}_{POPPED}"}
    for message in again:
        assert ack(client, POPPERS, message).code == 0
    assert pop(client, POPPERS, POPPED, pollTime=4000).code == 210
    assert client.call(14, consumerGroup=ORDERED, topic=POPPED, queueId=0).fields["offset"] == "1"
    assert pop(client, ORDERED, POPPED, order=True, queueId=0, attemptId="b").code == 210, "it is blocked"
    same = pop(client, ORDERED, POPPED, order=True, queueId=0, attemptId="a", maxMsgNums=2)
    assert [message.body for message in popped(same, ORDERED, POPPED)] == ["m2", "m4"]
    modes = json.loads(client.call(GET_MODES).body)["messageRequestModeMap"]
    assert modes[POPPED][POPPERS]["popShareQueueNum"] == 1


def delivered_before_ms(server: Server) -> int:
    """The timer's progress in the file: after a kill, later deliveries are repeated."""
    path = server.store / "config" / "timercheck"
    return int.from_bytes(path.read_bytes()[:8], "big") if path.exists() else 0


def finish(server: Server, client: RawClient) -> None:
    """Answer the broker's checks until no half message is open."""
    with ProducerPeer(server, GROUP, "finisher@1") as producer:
        question = producer.next(CHECK_TRANSACTION_STATE)
        (message,) = stored(question.body)
        assert (message.topic, message.body) == (TOPIC, b"open"), "only the open transaction is checked"
        half = Reply(
            0,
            "",
            {
                "queueOffset": question.fields["tranStateTableOffset"],
                "msgId": question.fields["offsetMsgId"],
            },
        )
        assert end(client, half, COMMIT, fromTransactionCheck=True).code == 0


@ON_DEMAND
@pytest.mark.timeout(RUN_SECONDS)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_the_next_broker_completes_what_waits(runs: dict[Pair, Future[None]], pair: Pair) -> None:
    runs[pair].result()


def hand_over(pair: Pair, home: Path) -> None:
    """One pair from beginning to end; raises on any difference."""
    with Namespace() as namespace:
        _hand_over(pair, home, namespace)


def _hand_over(pair: Pair, home: Path, namespace: Namespace) -> None:
    first, ending, second = pair
    before = make_server(first, home / "before", namespace=namespace, broker_conf=STORE_CONF)
    with before, RawClient(before) as client:
        outstanding = leave_popped(client) if before.emulates == "5.5" else []
        due_ms = leave_waiting(client)
        time.sleep(SETTLED_S[ending])
        if due_ms:
            wait_until(
                lambda: delivered_before_ms(before) > time.time() * 1000 - 3000, "the timer is not saved"
            )
        before.stop() if ending == "stop" else before.kill()
    after = make_server(second, home / "after", namespace=namespace, broker_conf=STORE_CONF)
    shutil.move(before.store, after.store)
    while (
        due_ms and time.time() * 1000 < due_ms - DUE_MS + LATE_MS + 2000
    ):  # the message named late is overdue now
        time.sleep(0.1)
    with after, RawClient(after) as client:
        finish(after, client)
        seen = wait_for(client, TOPIC, 2)
        assert Counter(message.body for message in seen) == {b"committed": 1, b"open": 1}
        assert all(message.properties["KEYS"] == "k" for message in seen)
        if due_ms:
            finish_popped(client, outstanding)
            timed = wait_for(client, TIMED, 3, timeout=120)
            assert [message.body for message in timed] == [b"came", b"late", b"due"]
            assert due_ms <= int(timed[2].properties["TIMER_DEQUEUE_MS"])
        time.sleep(2.0)  # no message arrives twice
        assert client.max_offset(TOPIC, 1) == 2
        assert client.max_offset(TIMED, 1) == (3 if due_ms else 0)
