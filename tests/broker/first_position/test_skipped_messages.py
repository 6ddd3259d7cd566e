"""The log says once which message a new group skips, and newGroupsStartAt takes the race away."""

import re
from collections.abc import Iterator

import pytest
from pocketmq.broker.errors import Refusal, StartError
from pocketmq.protocol.requests.offset import GetMaxOffset, QueryConsumerOffset
from pocketmq.store.clock import VirtualClock
from pocketmq.testing import EmbeddedServer, RocketMQ


@pytest.fixture
def mq() -> Iterator[RocketMQ]:
    with EmbeddedServer(clock=VirtualClock()) as server:
        yield RocketMQ(server)


def ask(mq: RocketMQ, topic: str, queue_id: int = 3, group: str = "g") -> int | None:
    """What the broker answers to 14; None for "not found"."""
    question = QueryConsumerOffset(consumer_group=group, topic=topic, queue_id=queue_id)
    try:
        return mq.server.request(question).offset
    except Refusal:
        return None


def end(mq: RocketMQ, topic: str, queue_id: int = 3) -> int:
    return mq.server.request(GetMaxOffset(topic=topic, queue_id=queue_id)).offset


def test_message_between_the_two_questions_of_a_new_group_is_named_once(
    mq: RocketMQ, caplog: pytest.LogCaptureFixture
) -> None:
    mq.topic("t", queues=4)
    for _ in range(2):
        mq.server.request(GetMaxOffset(topic="t", queue_id=3))
        assert ask(mq, "t") is None
        mq.send("t", "skipped", queue_id=3)
        mq.server.call(mq.server.broker.clock.advance, 12)  # type: ignore[attr-defined]
        assert end(mq, "t") == 1
        assert end(mq, "t") == 1
        lines = [record.getMessage() for record in caplog.records if "is skipped" in record.getMessage()]
        expected = "group g starts topic t queue 3 at 1: 1 message sent 12 ms before is skipped, rule B6 + LAST_OFFSET"
        assert len(lines) == 1
        assert lines[0].startswith(expected)
        caplog.clear()
        mq.server.reset()
        mq.topic("t", queues=4)


def test_nothing_is_said_of_a_group_that_skips_nothing(
    mq: RocketMQ, caplog: pytest.LogCaptureFixture
) -> None:
    mq.topic("t", queues=4)
    assert ask(mq, "t") is None
    assert end(mq, "t") == 0
    mq.send("t", "read", queue_id=3)
    assert end(mq, "t") == 1, "asked by somebody else"
    assert ask(mq, "t", group="another") == 0
    assert not re.search("skipped", caplog.text)


@pytest.mark.parametrize(("start", "empty", "filled"), [("first", 0, 0), ("last", 0, 2)])
def test_new_groups_start_where_the_setting_says(
    start: str, empty: int, filled: int, caplog: pytest.LogCaptureFixture
) -> None:
    with EmbeddedServer(newGroupsStartAt=start) as server:
        mq = RocketMQ(server)
        mq.topic("t", queues=4)
        assert ask(mq, "t") == empty, "no second question, so no race"
        for _ in range(2):
            mq.send("t", "x", queue_id=3)
        assert ask(mq, "t") == filled
        [position] = [one for one in mq.explain("g", "t") if one.queue_id == 3]
        assert (position.offset, position.rule) == (filled, "B7")
        assert "newGroupsStartAt" in position.because
        mq.send("%RETRY%g", "sent back", queue_id=0)
        assert ask(mq, "%RETRY%g", 0) == 0, "what the group itself sent back is never skipped"
        server.call(server.broker.offsets.commit, "t", "g", 3, 1)
        assert ask(mq, "t") == 1, "a stored offset wins"
        forbidden = QueryConsumerOffset(
            consumer_group="new", topic="t", queue_id=3, set_zero_if_not_found=False
        )
        with pytest.raises(Refusal):
            server.request(forbidden)


def test_wrong_value_names_the_allowed_ones() -> None:
    with pytest.raises(StartError, match="newGroupsStartAt must be official, first or last, got 'end'"):
        EmbeddedServer(newGroupsStartAt="end").start()
