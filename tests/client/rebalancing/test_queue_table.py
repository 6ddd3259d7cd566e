"""The table of process queues, and the subscriptions of a consumer."""

import pytest
from pocketmq.client import InvalidArgument, MessageQueue
from pocketmq.client.rebalancing.process_queue import ProcessQueue, QueueTable
from pocketmq.client.rebalancing.subscriptions import Subscriptions

from client_vectors import FakeClock

QUEUE = MessageQueue("T", "b", 0)


def test_only_the_process_queue_that_was_dropped_is_removed() -> None:
    table, old, new = QueueTable(), ProcessQueue(FakeClock()), ProcessQueue(FakeClock())
    table[QUEUE] = old
    old.dropped = True
    assert (list(table), table.live()) == ([QUEUE], [])
    table[QUEUE] = new
    table.discard(QUEUE, old)
    assert table[QUEUE] is new
    table.discard(QUEUE, new)
    table.discard(QUEUE, new)
    assert len(table) == 0


def test_a_new_version_keeps_the_expression() -> None:
    subscriptions = Subscriptions()
    subscriptions.subscribe("T", "A || B")
    before = subscriptions.get("T")
    subscriptions.renew("T")
    subscriptions.renew("unknown")
    after = subscriptions.get("T")
    assert before is not None
    assert after is not None
    assert after.sub_version >= before.sub_version
    assert (after.sub_string, after.tags_set) == (before.sub_string, before.tags_set)


def test_a_wrong_expression_is_refused_and_the_old_one_stays() -> None:
    subscriptions = Subscriptions()
    subscriptions.subscribe("T", "A")
    with pytest.raises(InvalidArgument, match="subscription exception"):
        subscriptions.subscribe("T", "||")
    kept = subscriptions.get("T")
    assert kept is not None
    assert kept.sub_string == "A"
