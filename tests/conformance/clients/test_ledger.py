"""The ledger with unmodified clients: clean runs have clean verdicts, a queue that changes hands has its own.

The server is embedded in this process. Java 4.9.8 and 5.5.0; each consumer stays open while the test asks, so
nothing that is only committed at the end is counted as consumed by chance.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from pocketmq.client import AdminClient
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.ledger.verdict import KINDS, Verdict

from conformance.official.beside import START_S, BesideClient, StartBeside
from waiting import wait_until

MESSAGES, QUEUES, MOST_ROUNDS = 60, 4, 100
SEEN = r"^SEEN \d+ (\d+) "
"""With the queue offset of the message."""
Member = Callable[..., BesideClient]


@pytest.fixture
def mq() -> Iterator[RocketMQ]:
    with EmbeddedServer(ledger=True, enablePropertyFilter=True) as server:
        yield RocketMQ(server)


@pytest.fixture
def member(java: StartBeside, mq: RocketMQ) -> Member:
    """member(topic, group, mode, name, takes_ms): a Java consumer."""

    def start(topic: str, group: str, mode: str, name: str = "one", takes_ms: int = 0) -> BesideClient:
        return java("LedgerMember", mq.namesrv_addr, topic, group, mode, name, str(takes_ms))

    return start


def send(mq: RocketMQ, topic: str, count: int = MESSAGES) -> None:
    for number in range(count):
        mq.send(topic, f"order {number}", properties={"number": str(number)})


def found(verdict: Verdict) -> dict[str, int]:
    return {kind: len(getattr(verdict, kind)) for kind in KINDS if getattr(verdict, kind)}


# -- clean runs


@pytest.mark.parametrize("mode", ["concurrent", "orderly", "broadcast", "sql", "pop"])
def test_java_consumers_are_clean(mq: RocketMQ, member: Member, version: str, mode: str) -> None:
    """Two members share the queues, or each has them all, before the messages are sent."""
    if (version, mode) == ("4.9", "pop"):
        pytest.skip("the push consumer of 4.9 does not pop")
    topic, group = mq.topic("orders"), mq.group("billing")
    if mode == "pop":
        mq.server.run(_pop_mode(mq, topic, group))
    members = [member(topic, group, mode, name) for name in ("one", "two")]
    mq.wait_members(group, 2, timeout_seconds=START_S)
    shares = mode not in ("broadcast", "pop")
    if shares:
        wait_until(lambda: is_shared(mq, topic), "each member pulls two queues", START_S)
    times = 2 if mode == "broadcast" else 1

    def consumed(first: int) -> int:
        """How many messages from this queue offset on."""
        return sum(int(offset) >= first for one in members for offset in one.said(SEEN))

    begin = send_until_owned(mq, topic, group, consumed, times, 2.0 if shares else 0.0)
    send(mq, topic)
    wanted = MESSAGES - 10 if mode == "sql" else MESSAGES * times
    wait_until(lambda: consumed(begin) >= wanted, "all are consumed", START_S)
    for one in members:
        one.leave()
    verdict = mq.ledger.verdict(topic, group)
    of_two_owners = [*verdict.duplicated, *verdict.offset_moved_back]
    assert shares or not of_two_owners, str(verdict)
    assert [one for one in of_two_owners if one.queue_offset >= begin] == [], str(verdict)
    assert found(verdict).keys() <= {"duplicated", "offset_moved_back"}, str(verdict)
    assert [one for one in mq.ledger.verdicts() if one.topic != topic and not one.is_clean()] == []


def send_until_owned(
    mq: RocketMQ, topic: str, group: str, consumed: Callable[[int], int], times: int, quiet_s: float
) -> int:
    """Send a message to each queue, round by round, until none was a duplicate for some seconds; returns the next queue
    offset.

    A member that loses a queue to a new one hears of it by a notification, and goes on pulling until it has; the pull
    that it leaves behind gets one message more. Nothing that a broker sees says when that is over, so this sleeps.
    """
    last_duplicate = time.monotonic()
    for offset in range(MOST_ROUNDS):
        for queue_id in range(QUEUES):
            mq.send(topic, "first", queue_id=queue_id, properties={"number": "10"})
        wait_until(lambda: consumed(offset) >= QUEUES * times, "the first ones are consumed", START_S)  # noqa: B023
        if any(finding.queue_offset == offset for finding in mq.ledger.verdict(topic, group).duplicated):
            last_duplicate = time.monotonic()
        if time.monotonic() - last_duplicate >= quiet_s:
            return offset + 1
        time.sleep(0.2)
    raise AssertionError(f"a queue still has two readers after {MOST_ROUNDS} messages")


def is_shared(mq: RocketMQ, topic: str) -> bool:
    newest = {
        request.queue_id: request.client_id for request in mq.requests.find(topic=topic, code="PULL_MESSAGE")
    }
    return len(newest) == QUEUES and sorted(Counter(newest.values()).values()) == [QUEUES // 2] * 2


async def _pop_mode(mq: RocketMQ, topic: str, group: str) -> None:
    async with AdminClient(namesrv_addr=mq.namesrv_addr) as admin:
        await admin.set_consume_mode(topic, group, "POP", cluster="DefaultCluster")


def test_one_java_consumer_is_clean_with_a_retry(mq: RocketMQ, member: Member) -> None:
    """A message that the listener refuses is delivered again: a retry, not a duplicate."""
    topic, group = mq.topic("orders"), mq.group("billing")
    one = member(topic, group, "concurrent")
    mq.wait_members(group, timeout_seconds=START_S)
    send(mq, topic)
    again = mq.send(topic, "again").msg_id
    one.wait_for(r"^SEEN \d+ \d+ 1 ", timeout=START_S)
    mq.wait_idle(group, timeout_seconds=START_S)
    assert again is not None
    mq.ledger.assert_all_clean()
    [message] = [message for message in mq.messages(topic) if message.text == "again"]
    history = mq.ledger.message(message.message_id or "")
    assert (len(history.deliveries), history.sent_back, history.dead_lettered) == (2, 1, None)


# -- a queue changes hands


def test_a_queue_that_changes_hands_in_order_has_a_verdict(mq: RocketMQ, member: Member) -> None:
    """Two orderly consumers, one queue: the first one leaves in the middle, the second one goes on where it stood."""
    topic, group = mq.topic("orders", queues=1), mq.group("billing")
    send(mq, topic)
    first = member(topic, group, "orderly", "first", takes_ms=500)
    first.wait_for(SEEN, 2)
    second = member(topic, group, "orderly", "second", takes_ms=1)
    mq.wait_members(group, 2, timeout_seconds=START_S)
    first.leave()
    wait_until(lambda: str(MESSAGES - 1) in second.said(SEEN), "the second member has the last", START_S)
    seen = [[int(offset) for offset in one.said(SEEN)] for one in (first, second)]
    assert seen[0] == list(range(len(seen[0])))
    assert seen[1] == list(range(seen[1][0], MESSAGES))
    assert seen[1][0] <= len(seen[0]), "nothing between the two is missing"
    verdict = mq.ledger.verdict(topic, group)
    assert set(found(verdict)) <= {"duplicated"}
    broker = mq.server.broker.config.broker_name
    of_queue = verdict.by_queue()[broker, 0]
    assert [finding.queue_offset for finding in of_queue.duplicated] == [
        finding.queue_offset for finding in verdict.duplicated
    ]
    assert {finding.queue_offset for finding in verdict.duplicated} <= set(seen[1])
    for finding in verdict.duplicated:
        names = [re.sub(r".*@|#.*", "", request.client_id or "") for request in finding.requests]
        assert names == ["first", "second"]


# -- waiting for Java consumers that stay open


def test_wait_consumed_and_wait_idle_know_what_a_java_consumer_has_done(mq: RocketMQ, member: Member) -> None:
    """Long before it commits: a Java consumer does that every five seconds."""
    topic, group = mq.topic("orders"), mq.group("billing")
    one = member(topic, group, "concurrent", takes_ms=5)
    mq.wait_members(group, timeout_seconds=START_S)
    wait_until(lambda: len(mq.held_pulls(topic=topic)) == 4, "all queues are pulled", START_S)
    for wait in (mq.wait_idle, lambda group, **words: mq.wait_consumed(topic, group, **words)):
        seen, began = len(one.said(SEEN)), time.monotonic()
        send(mq, topic)
        wait(group, timeout_seconds=START_S)
        assert len(one.said(SEEN)) == seen + MESSAGES
        assert time.monotonic() - began < 4.0, "it did not wait for a commit"
