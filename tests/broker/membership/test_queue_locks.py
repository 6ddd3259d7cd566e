"""One owner for each queue of a group, for 60 seconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.membership import queue_locks
from pocketmq.broker.membership.queue_locks import LOCK_MAX_LIVE_MS, QueueLocks
from pocketmq.protocol.message.message_queue import MessageQueue


def queues(*ids: int) -> list[MessageQueue]:
    return [MessageQueue("t", "broker-a", queue_id) for queue_id in ids]


def test_groups_do_not_see_each_other() -> None:
    locks = QueueLocks()
    locks.lock("g", queues(0), "a", 0)
    locks.unlock("h", queues(0), "a")
    assert locks.lock("h", queues(0), "b", 0) == queues(0)


def test_a_renewed_lock_lives_60_seconds_from_its_renewal() -> None:
    locks = QueueLocks()
    locks.lock("g", queues(0), "a", 0)
    locks.lock("g", queues(0), "a", 20_000)
    assert locks.lock("g", queues(0), "b", 20_000 + LOCK_MAX_LIVE_MS) == []
    assert locks.lock("g", queues(0), "b", 20_001 + LOCK_MAX_LIVE_MS) == queues(0)
    assert locks.owner("g", queues(0)[0], 20_001 + LOCK_MAX_LIVE_MS) == "b"


def test_ordered_consumption_is_over_when_every_lock_expired() -> None:
    locks = QueueLocks()
    assert locks.are_all_expired("g", 0)
    locks.lock("g", queues(0), "a", 0)
    locks.lock("g", queues(1), "a", 10)
    assert not locks.are_all_expired("g", LOCK_MAX_LIVE_MS + 5)
    assert locks.are_all_expired("g", LOCK_MAX_LIVE_MS + 11)


def test_expired_locks_are_forgotten() -> None:
    locks = QueueLocks()
    locks.lock("g", queues(0), "a", 0)
    locks.lock("g", queues(1), "a", 50_000)
    list(locks.expire(LOCK_MAX_LIVE_MS + 1))
    assert locks.owner("g", queues(0)[0], 0) is None
    assert locks.owner("g", queues(1)[0], LOCK_MAX_LIVE_MS + 1) == "a"


def test_locks_are_limited_until_others_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_locks, "MAX_LOCKS", 3)
    locks = QueueLocks()
    assert locks.lock("g", queues(0, 1), "a", 0) == queues(0, 1)
    assert locks.lock("h", queues(0, 1), "a", 0) == queues(0)
    assert locks.lock("g", queues(0, 1), "a", 10) == queues(0, 1)
    locks.unlock("g", queues(1), "a")
    assert locks.lock("h", queues(1, 2), "a", 20) == queues(1)
    list(locks.expire(LOCK_MAX_LIVE_MS + 21))
    assert locks.lock("i", queues(0, 1, 2), "a", LOCK_MAX_LIVE_MS + 30) == queues(0, 1, 2)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["lock", "unlock", "expire"]),
            st.sampled_from("ab"),
            st.integers(0, 2),
            st.integers(0, 40_000),
        )
    )
)
def test_no_queue_has_two_owners(steps: list[tuple[str, str, int, int]]) -> None:
    locks = QueueLocks()
    now_ms = 0
    last: dict[int, tuple[str, int]] = {}
    for action, client_id, queue_id, pause_ms in steps:
        now_ms += pause_ms
        owner = last.get(queue_id)
        is_free = owner is None or now_ms - owner[1] > LOCK_MAX_LIVE_MS
        if action == "lock":
            held = locks.lock("g", queues(queue_id), client_id, now_ms)
            assert bool(held) == (is_free or (owner is not None and owner[0] == client_id))
            if held:
                last[queue_id] = (client_id, now_ms)
        elif action == "unlock":
            locks.unlock("g", queues(queue_id), client_id)
            if owner is not None and owner[0] == client_id:
                del last[queue_id]
        else:
            list(locks.expire(now_ms))
