"""Planted faults of each kind are found, exactly those, with the requests that prove them."""

from typing import Any

import pytest
from pocketmq.protocol.message.offset_id import encode_message_id
from pocketmq.testing import RocketMQ

from frames_client import Raw, raw
from testing_acts import pull_words

from .planted import COMMIT, MAX_OFFSET, PULL, SEND_BACK, commit, found, pull, sent

SERVER = {"ledger": True, "newGroupsStartAt": "first", "enablePropertyFilter": True}


@pytest.mark.parametrize(
    ("tags", "pulls", "committed", "expected"),
    [
        pytest.param("aaa", [(0, {})], 3, {}, id="everything"),
        pytest.param("aa", [(0, {"most": 1}), (2, {"sysFlag": 5, "commitOffset": 2})], None, {"lost": [1]}, id="pull"),
        pytest.param("aaa", [(at, {"most": 1}) for at in (0, 2, 1)], 3, {"out_of_order": [1]}, id="backwards"),
        pytest.param("ab", [(0, {"tags": "a"})], 2, {}, id="what the filter leaves out is not lost"),
    ],
)  # fmt: skip
def test_what_a_client_read_and_committed_is_judged(
    one: RocketMQ,
    client: Raw,
    topic: str,
    tags: str,
    pulls: list[tuple[int, dict[str, Any]]],
    committed: int | None,
    expected: dict[str, list[int]],
) -> None:
    for tag in tags:
        sent(one, topic, 1, tags=tag)
    for offset, words in pulls:
        pull(client, topic, offset, **words)
    if committed is not None:
        commit(client, topic, committed)
    assert found(one.ledger.verdict(topic, "g")) == expected
    if not expected:
        one.ledger.assert_clean(topic, "g")


def test_a_commit_beyond_undelivered_messages_loses_them(one: RocketMQ, client: Raw, topic: str) -> None:
    sent(one, topic, 4)
    pull(client, topic, 0, most=1)
    commit(client, topic, 3)
    verdict = one.ledger.verdict(topic, "g")
    assert found(verdict) == {"lost": [1, 2], "unread": [3]}
    stored = one.messages(topic)
    assert [finding.message_id for finding in verdict.lost] == [one.message_id for one in stored[1:3]]
    assert [request.code for request in verdict.lost[0].requests] == [310, COMMIT]


def test_a_message_pulled_again_is_a_duplicate(one: RocketMQ, client: Raw, topic: str) -> None:
    sent(one, topic, 3)
    pull(client, topic, 0)
    pull(client, topic, 1, most=1)
    commit(client, topic, 3)
    verdict = one.ledger.verdict(topic, "g")
    assert found(verdict) == {"duplicated": [1]}
    assert [request.fields["queueOffset"] for request in verdict.duplicated[0].requests] == ["0", "1"]
    one.ledger.assert_clean(topic, "g", allow=("duplicated",))
    with pytest.raises(AssertionError, match=r"(?s)duplicated: 1.*PULL_MESSAGE"):
        one.ledger.assert_clean(topic, "g")
    assert verdict.by_queue().keys() == {(one.server.broker.config.broker_name, 0)}


def test_a_sharding_key_keeps_its_order_over_queues(one: RocketMQ, client: Raw) -> None:
    topic = one.topic("keyed", queues=2)
    for queue_id in (0, 1):
        one.send(topic, "x", queue_id=queue_id, properties={"__SHARDINGKEY": "k"})
    for queue_id in (1, 0):
        pull(client, topic, 0, queueId=queue_id)
    [late] = one.ledger.verdict(topic, "g").out_of_order
    assert (late.queue_id, late.sharding_key) == (0, "k")


def test_an_offset_that_moves_back_is_found_with_both_commits(one: RocketMQ, client: Raw, topic: str) -> None:
    sent(one, topic, 3)
    pull(client, topic, 0)
    commit(client, topic, 3)
    commit(client, topic, 1)
    verdict = one.ledger.verdict(topic, "g")
    assert found(verdict) == {"offset_moved_back": [1]}
    commits = verdict.offset_moved_back[0].requests
    assert [request.fields["commitOffset"] for request in commits] == ["3", "1"]


def test_what_was_sent_before_a_new_group_began_is_unread(one: RocketMQ, client: Raw, topic: str) -> None:
    sent(one, topic, 1)
    begin = int((client.ask(MAX_OFFSET, topic=topic, queueId=0).fields or {})["offset"])
    pull(client, topic, begin)
    sent(one, topic, 1)
    pull(client, topic, begin)
    commit(client, topic, begin + 1)
    assert found(one.ledger.verdict(topic, "g")) == {"unread": [0]}


def test_an_answer_that_a_fault_swallowed_is_no_delivery(one: RocketMQ, client: Raw, topic: str) -> None:
    sent(one, topic, 1)
    one.faults.silence(code="PULL_MESSAGE", execute=True)
    client.send(PULL, topic=topic, **pull_words(0, most=1))
    one.requests.wait_for(code="PULL_MESSAGE")
    commit(client, topic, 1)
    assert found(one.ledger.verdict(topic, "g")) == {"lost": [0]}


def test_a_commit_that_a_fault_refused_is_none(one: RocketMQ, client: Raw, topic: str) -> None:
    sent(one, topic, 1)
    one.faults.refuse(code="UPDATE_CONSUMER_OFFSET", response="SYSTEM_ERROR")
    pull(client, topic, 1)
    assert client.ask(COMMIT, consumerGroup="g", topic=topic, queueId=0, commitOffset=1).code == 1
    assert found(one.ledger.verdict(topic, "g")) == {"unread": [0]}


def test_a_message_that_was_sent_back_is_no_duplicate_when_it_is_retried(one: RocketMQ, topic: str) -> None:
    one.group("g")
    sent(one, topic, 1)
    [stored] = one.messages(topic)
    with raw(one.server.broker_addr) as client:
        pull(client, topic, 0)
        back = {"offset": stored.position, "group": "g", "delayLevel": -1, "originTopic": topic}
        assert client.ask(SEND_BACK, **back, maxReconsumeTimes=16).code == 0
        commit(client, topic, 1)
    assert found(one.ledger.verdict(topic, "g")) == {}
    history = one.ledger.message(stored.message_id or "")
    assert (history.topic, history.deliveries, history.sent_back) == (topic, [("g", None)], 1)
    assert (history.acknowledged, history.dead_lettered) == (True, "sent back with delay level -1")


@pytest.mark.parametrize("indexes", [True, False])
def test_a_message_is_found_by_both_of_its_ids_with_and_without_an_index(
    one: RocketMQ, topic: str, indexes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent(one, topic, 3)
    monkeypatch.setattr(one.server.broker.config.store, "message_index_enable", indexes)
    host = one.server.broker.identity.store_host
    for stored in one.messages(topic):
        for message_id in (stored.message_id or "", encode_message_id(host, stored.position)):
            assert one.ledger.message(message_id).topic == topic
    with pytest.raises(ValueError, match="no message has the id"):
        one.ledger.message(encode_message_id(host, stored.position + 1))


def test_unknown_names_are_one_clear_error(one: RocketMQ, topic: str) -> None:
    for wrong in ("ordres", "rders"):
        with pytest.raises(ValueError, match=rf"topic {wrong} does not exist; did you mean orders\?"):
            one.ledger.verdict(wrong, "g")
    one.topic("t7-returns")
    with pytest.raises(ValueError, match=r"topic returns does not exist; did you mean t7-returns\?"):
        one.ledger.verdict("returns", "g")
    with pytest.raises(ValueError, match=f"group g never read topic {topic}"):
        one.ledger.verdict(topic, "g")
    with pytest.raises(ValueError, match="no message has the id 17"):
        one.ledger.message("17")
    with pytest.raises(ValueError, match="allow must name lost, duplicated"):
        one.ledger.assert_clean(topic, "g", allow=("doubled",))
