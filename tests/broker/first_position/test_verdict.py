"""The verdict of `explain` is always the decision that 14 gets, with the numbers that led to it."""

import logging

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.first_position.verdict import decide_first_position, explain
from pocketmq.protocol.requests.offset import Verdict

from broker_fakes import MakeBroker, store_message


def verdict(broker: Broker, topic: str = "T") -> Verdict:
    """Of group G and queue 0; and never other than what is answered."""
    said = explain(broker, "G", topic, 0)
    decision = decide_first_position(broker, "G", topic, 0)
    assert (said.rule, said.offset) == (decision.rule.value, decision.offset)
    return said


def starts(said: Verdict) -> tuple[int | None, int | None, int | None]:
    return said.from_last, said.from_first, said.from_timestamp


async def test_a_young_topic_is_read_from_its_start(broker: Broker) -> None:
    """The field's best-known puzzle: LAST reads history."""
    for _ in range(3):
        store_message(broker, "T")
    said = verdict(broker)
    assert (said.rule, said.offset) == ("B4", 0)
    assert starts(said) == (0, 0, 0)
    assert (said.min_offset, said.max_offset, said.stored_offset) == (0, 3, -1)
    assert "still in memory" in said.because
    assert said.residency == "distance"
    assert said.first_position_bytes == 0
    assert said.log_end_bytes == broker.store.log_end


async def test_a_stored_offset_wins(broker: Broker) -> None:
    store_message(broker, "T")
    broker.offsets.commit("T", "G", 0, 7)
    said = verdict(broker)
    assert (said.rule, starts(said)) == ("B1", (7, 7, 7))
    assert "7" in said.because


async def test_a_waiting_reset_wins_over_it(broker: Broker) -> None:
    store_message(broker, "T")
    broker.offsets.commit("T", "G", 0, 7)
    broker.offsets.assign_reset("T", "G", 0, 2)
    said = verdict(broker)
    assert (said.rule, said.reset_offset, starts(said)) == ("B0", 2, (2, 2, 2))
    assert "reset to 2" in said.because


async def test_a_reset_means_nothing_where_the_broker_keeps_none(broker_maker: MakeBroker) -> None:
    broker = broker_maker(use_server_side_reset_offset=False)
    broker.offsets.commit("T", "G", 0, 7)
    broker.offsets.assign_reset("T", "G", 0, 2)
    said = verdict(broker)
    assert (said.rule, said.offset) == ("B1", 2)  # a reset is stored as the group's offset as well


async def test_a_cold_topic_tells_its_distance(broker_maker: MakeBroker) -> None:
    broker = broker_maker(store={"memory_size_bytes": 10_000})
    store_message(broker, "T")
    store_message(broker, "Other", body=bytes(4000))
    said = verdict(broker)
    assert (said.rule, said.offset) == ("B5", None)
    assert starts(said) == (1, 0, None)
    assert said.memory_budget_bytes == 3000
    assert f"{broker.store.log_end:,} bytes from the log end > 3,000 bytes of memory" in said.because


async def test_another_policy_is_named(broker_maker: MakeBroker) -> None:
    broker = broker_maker(store={"memory_size_bytes": 0, "residency": "always-hot"})
    store_message(broker, "T")
    said = verdict(broker)
    assert (said.rule, said.offset) == ("B4", 0)
    assert "policy always-hot" in said.because


async def test_deleted_history_is_named(broker_maker: MakeBroker) -> None:
    broker = broker_maker(store={"mapped_file_size_commit_log": 4096})
    for _ in range(10):
        store_message(broker, "T", body=bytes(1000))
    assert broker.store.delete_oldest_log_file()
    said = verdict(broker)
    assert said.min_offset > 0
    assert (said.rule, said.offset) == ("B3", None)
    assert starts(said) == (10, said.min_offset, None)  # FIRST asks for 0, and is sent on
    assert f"min offset {said.min_offset}" in said.because


@pytest.mark.parametrize(("emulate", "offset"), [(4, 0), (5, None)])
async def test_an_empty_queue(broker_maker: MakeBroker, emulate: int, offset: int | None) -> None:
    said = verdict(broker_maker(emulate=emulate))
    assert (said.rule, said.offset) == ("B6", offset)
    assert said.is_first_message_hot is None
    assert "no first message" in said.because


async def test_a_retry_topic_starts_at_zero_under_last(broker: Broker) -> None:
    said = verdict(broker, "%RETRY%G")
    assert (said.rule, starts(said)) == ("B6", (0, 0, 0))


async def test_decisions_are_logged_in_words_at_debug_level(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    store_message(broker, "T")
    caplog.set_level(logging.INFO, "pocketmq.first_position")
    decide_first_position(broker, "G", "T", 0)
    assert not caplog.records
    caplog.set_level(logging.DEBUG, "pocketmq.first_position")
    decide_first_position(broker, "G", "T", 0)
    assert caplog.records[0].getMessage().startswith("G T queue 0: B4 no stored offset")
