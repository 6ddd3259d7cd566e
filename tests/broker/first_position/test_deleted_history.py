"""The puzzle's second act: once old files are deleted, a new group with CONSUME_FROM_LAST_OFFSET starts at the end.

Three days pass on the virtual clock, an administrator asks for cleaning (329), and the answer about a first position
changes from 0 to "not found", upon which a client goes by its own rule.
"""

import os

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.first_position.rules import FROM_LAST, QueueFacts, client_start, decide
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.offset import GetMinOffset, QueryConsumerOffset
from pocketmq.protocol.requests.topic import DeleteExpiredCommitLog
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import VirtualClock

from broker_fakes import Asked, MakeBroker, ask, store_message

FILE_BYTES = 4096
THREE_DAYS_MS = 72 * 3_600_000


def write_for_three_days(broker: Broker, clock: VirtualClock) -> int:
    """Each file is as old as its newest message; returns how many messages there are."""
    count = 40
    for _ in range(count):
        store_message(broker, "T", body=b"x" * 700)
        seconds = clock.now_ms() / 1000
        os.utime(broker.store.log.files[-1].path, (seconds, seconds))
        clock.advance(THREE_DAYS_MS // count)
    return count


async def first_position(broker: Broker) -> Asked:
    return await ask(broker, QueryConsumerOffset(consumer_group="new", topic="T", queue_id=0))


@pytest.mark.parametrize("emulate", [4, 5])
async def test_new_group_begins_at_the_end_once_history_was_deleted(
    broker_maker: MakeBroker, clock: VirtualClock, emulate: int
) -> None:
    broker = broker_maker(
        emulate=emulate, store={"mapped_file_size_commit_log": FILE_BYTES, "delete_when": "25"}
    )
    broker.topics.update(TopicConfig(topic_name="T", read_queue_nums=1, write_queue_nums=1))
    broker.groups.find_or_create("new")
    count = write_for_three_days(broker, clock)
    assert len(broker.store.log.files) > 3

    assert (await first_position(broker)).fields == {"offset": "0"}, "the first act: history is read"
    assert broker.retention.run() == 0, "it is not the hour"

    clock.advance(THREE_DAYS_MS // 5)
    assert (await ask(broker, DeleteExpiredCommitLog())).code == 0
    minimum = int((await ask(broker, GetMinOffset(topic="T", queue_id=0))).fields["offset"])
    assert 0 < minimum < count
    answer = await first_position(broker)
    assert answer.code == ResponseCode.QUERY_NOT_FOUND

    decision = decide(QueueFacts(min_offset=minimum), is_5=emulate == 5)
    assert client_start(decision, FROM_LAST, is_retry_topic=False, max_offset=count) == count
