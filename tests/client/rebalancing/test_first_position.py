"""First positions: every case of the official decision, and how its timestamp is read."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client import ConsumeFromWhere, MessageQueue
from pocketmq.client.errors import ClientError, FirstPositionUnknown
from pocketmq.client.rebalancing import first_position as first_positions
from pocketmq.client.rebalancing.first_position import first_position, pop_init_mode
from pocketmq.client.settings.timestamps import format_timestamp, parse_timestamp
from pocketmq.protocol.wire.response_codes import ResponseCode

from client_vectors import plain, refusal, vectors
from time_zones import in_zone

MAX_OFFSET, FOUND_BY_TIME = 700, 300  # the answer of the recording program's broker
CONSUME_TIMESTAMP = "20240229123456"
BROKER: Any = None
REFUSED_HERE = {" 20240131000000", "2024-01-31 00:00", "00010101000000", "99991231235959"}
"""Java reads a shifted year or a negative month out of the first two; the others are the ends of Python's time."""


@pytest.fixture(autouse=True)
def _time_zone_of_the_recording() -> Iterator[None]:
    with in_zone("Europe/Berlin"):
        yield


async def decided(where: ConsumeFromWhere, stored: int, topic: str) -> int:
    """The decision, from a broker that answers as the one of the recording program."""
    return await first_position(BROKER, MessageQueue(topic, "b", 0), stored, where, CONSUME_TIMESTAMP)


@pytest.fixture(autouse=True)
def _broker_of_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_end(instance: object, queue: MessageQueue) -> int:
        return MAX_OFFSET

    async def by_time(instance: object, queue: MessageQueue, timestamp_ms: int) -> int:
        assert timestamp_ms == parse_timestamp(CONSUME_TIMESTAMP)
        return FOUND_BY_TIME

    monkeypatch.setattr(first_positions, "max_offset", at_end)
    monkeypatch.setattr(first_positions, "search_offset", by_time)


@pytest.mark.parametrize(("asked", "recorded"), vectors("first-position"))
async def test_every_case_is_decided_as_in_java(asked: str, recorded: str) -> None:
    where, stored, topic = asked.split(";")
    refused = refusal(recorded)
    if refused is None:
        assert await decided(ConsumeFromWhere(where), int(stored), topic) == int(recorded)
        return
    with pytest.raises(FirstPositionUnknown) as caught:
        await decided(ConsumeFromWhere(where), int(stored), topic)
    assert (str(caught.value.code), str(caught.value)) == refused


async def test_a_negative_answer_of_the_broker_is_no_position(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(instance: object, queue: MessageQueue) -> int:
        return -1

    monkeypatch.setattr(first_positions, "max_offset", broken)
    with pytest.raises(FirstPositionUnknown, match="Found unexpected result -1") as caught:
        await decided(ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, -1, "t")
    assert caught.value.code == ResponseCode.SYSTEM_ERROR


def test_pop_starts_at_the_minimum_only_with_first():
    assert {where for where in ConsumeFromWhere if pop_init_mode(where) == 0} == {
        ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    }


@pytest.mark.parametrize(("encoded", "moment_ms"), vectors("consume-timestamp"))
def test_timestamps_are_read_as_in_java(encoded: str, moment_ms: str):
    text = plain(encoded)
    if moment_ms and text not in REFUSED_HERE:
        assert parse_timestamp(text) == int(moment_ms)
    else:
        with pytest.raises(ClientError, match="the valid format is yyyyMMddHHmmss,but received"):
            parse_timestamp(text)


@pytest.mark.parametrize(("moment_ms", "text"), vectors("consume-timestamp-text"))
def test_timestamps_are_written_as_in_java(moment_ms: str, text: str):
    assert format_timestamp(int(moment_ms)) == text


@given(st.text("0123456789 -:x", max_size=20))
def test_texts_without_thirteen_digits_first_are_refused(text: str):
    if re.match(r"\d{13}", text) is None:
        with pytest.raises(ClientError, match=f"received {re.escape(text)}$"):
            parse_timestamp(text)


@given(st.integers(0, 4_000_000_000))
def test_what_is_written_is_read_back(moment_s: int):
    again_ms = parse_timestamp(format_timestamp(moment_s * 1000))
    # Only in the hour that a clock change repeats is the text ambiguous.
    assert again_ms in (moment_s * 1000, moment_s * 1000 + 3_600_000)
