"""What the ledger forgets: the oldest facts of a full one, and everything when the server begins anew."""

import pytest
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.ledger import book

from frames_client import Raw, raw

from .planted import ack, commit, found, pop, pull, sent

SERVER = {"ledger": True, "newGroupsStartAt": "first", "enablePropertyFilter": True}


@pytest.fixture
def small(one: RocketMQ, monkeypatch: pytest.MonkeyPatch) -> RocketMQ:
    """A ledger with room for ten facts."""
    monkeypatch.setattr(one.ledger._book, "_most", 10)
    return one


def test_forgotten_messages_are_counted_and_not_judged(small: RocketMQ, client: Raw, topic: str) -> None:
    sent(small, topic, 30)
    pull(client, topic, 0)
    commit(client, topic, 30)
    verdict = small.ledger.verdict(topic, "g")
    assert found(verdict) == {}
    assert verdict.forgotten == 21
    assert "21 older facts left the ledger, which was full: not judged" in str(verdict)


def test_a_full_ledger_still_finds_what_is_new(small: RocketMQ, client: Raw, topic: str) -> None:
    sent(small, topic, 30)
    pull(client, topic, 0, most=28)
    commit(client, topic, 29)
    assert found(small.ledger.verdict(topic, "g")) == {"lost": [28], "unread": [29]}


def test_where_a_group_began_is_remembered_for_ever(small: RocketMQ, client: Raw, topic: str) -> None:
    """What was sent before is unread, not lost, however long ago the group began."""
    sent(small, topic, 2)
    pull(client, topic, 2)
    sent(small, topic, 12)
    for offset in range(3, 15):
        commit(client, topic, offset)
    verdict = small.ledger.verdict(topic, "g")
    assert (found(verdict), verdict.forgotten) == ({"lost": list(range(2, 14)), "unread": [0, 1]}, 2)


def test_an_ack_that_left_takes_its_message_along(small: RocketMQ, topic: str) -> None:
    small.group("g")
    sent(small, topic, 12)
    for receipt in pop(small, topic).receipts:
        ack(small, topic, receipt)
    verdict = small.ledger.verdict(topic, "g")
    assert (found(verdict), verdict.forgotten) == ({}, 14)


def test_requests_wait_to_be_read_within_limits(
    one: RocketMQ, client: Raw, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "UNREAD", 3)
    unread = []
    for _ in range(20):
        pull(client, topic, 0)
        unread.append(len(one.ledger._book._unread))
    assert 0 < max(unread) <= 3


def test_a_reset_empties_the_ledger(one: RocketMQ) -> None:
    """Other messages will lie where those of before lay."""
    mark = one.server.mark()
    for _ in range(2):
        topic = one.topic("orders", queues=1)
        sent(one, topic, 2)
        with raw(one.server.broker_addr) as client:
            pull(client, topic, 0)
            commit(client, topic, 2)
        one.ledger.assert_clean(topic, "g")
        one.server.reset(mark)
    with pytest.raises(ValueError, match="topic orders does not exist"):
        one.ledger.verdict("orders", "g")


def test_a_snapshot_that_is_restored_begins_a_new_ledger(one: RocketMQ, topic: str) -> None:
    sent(one, topic, 2)
    situation = one.snapshot()
    for _ in range(2):
        with raw(one.server.broker_addr) as client:
            pull(client, topic, 0)
            commit(client, topic, 2)
        one.ledger.assert_clean(topic, "g")
        one.restore(situation)


def test_a_temporary_server_that_starts_again_has_an_empty_ledger() -> None:
    server = EmbeddedServer(ledger=True)
    for _ in range(2):
        with server:
            one = RocketMQ(server)
            topic = one.topic("orders", queues=1)
            sent(one, topic, 1)
            with raw(server.broker_addr) as client:
                pull(client, topic, 0)
                commit(client, topic, 1)
            one.ledger.assert_clean(topic, "g")


def test_a_kept_store_that_is_opened_again_goes_on(tmp_path: object) -> None:
    """What a group lost before is still lost, and what it consumed is not judged anew."""
    server = EmbeddedServer(ledger=True, store=str(tmp_path))
    with server:
        topic = RocketMQ(server).topic("orders", queues=1)
        sent(RocketMQ(server), topic, 3)
        with raw(server.broker_addr) as client:
            pull(client, topic, 0, most=1)
            commit(client, topic, 2)
    with server:
        with raw(server.broker_addr) as client:
            pull(client, topic, 2)
            commit(client, topic, 3)
        assert found(server.ledger.verdict(topic, "g")) == {"lost": [1]}
