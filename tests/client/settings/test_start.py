"""Where a new group starts, said in Python's words: the official settings that follow, and what is refused."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pocketmq.client import (
    ConsumeFromWhere,
    InvalidSetting,
    LitePullConsumer,
    LitePullConsumerSettings,
    PushConsumer,
    PushConsumerSettings,
)
from pocketmq.client.settings.timestamps import parse_timestamp

from time_zones import in_zone

MAKERS: list[Callable[..., Any]] = [PushConsumer, LitePullConsumer]
EVERY_CONSUMER = pytest.mark.parametrize("make", MAKERS)


@pytest.fixture
def berlin() -> Iterator[None]:
    with in_zone("Europe/Berlin"):
        yield


@EVERY_CONSUMER
@pytest.mark.parametrize(
    ("start", "where"),
    [
        ("first", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET),
        ("last", ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET),
        (datetime(2026, 1, 1), ConsumeFromWhere.CONSUME_FROM_TIMESTAMP),
    ],
)
def test_a_start_is_an_official_setting(
    make: Callable[..., Any], start: object, where: ConsumeFromWhere
) -> None:
    assert make("g", start=start).settings.consume_from_where is where


@EVERY_CONSUMER
@pytest.mark.parametrize(
    "moment", [datetime(2026, 7, 1, 12, 30, 5), datetime(2026, 7, 1, 12, 30, 5, tzinfo=UTC)]
)
def test_a_time_becomes_the_official_text(make: Callable[..., Any], moment: datetime, berlin: None) -> None:
    text = make("g", start=moment).settings.consume_timestamp
    assert text == ("20260701123005" if moment.tzinfo is None else "20260701143005")


def test_no_message_is_missed_when_the_hour_is_there_twice(berlin: None) -> None:
    """02:30 on the day the clocks are set back: the text alone means the second one."""
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    for moment in (first, first + timedelta(hours=1)):
        start_ms = parse_timestamp(PushConsumer("g", start=moment).settings.consume_timestamp)
        assert start_ms <= moment.timestamp() * 1000


@EVERY_CONSUMER
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"consume_from_where": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET}, "start or consume_from_where"),
        ({"consume_timestamp": "20260101000000"}, "start or consume_timestamp"),
        ({"start": "earliest"}, "expected 'first', 'last' or a datetime"),
        ({"start": datetime.min}, "out of range|year must be"),
        ({"start": []}, "expected 'first', 'last' or a datetime"),
        ({"start": 5}, "expected 'first', 'last' or a datetime"),
    ],
)
def test_contradictions_and_other_words_are_refused(
    make: Callable[..., Any], given: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidSetting, match=reason):
        make("g", **({"start": "first"} | given))


def test_a_start_beside_settings_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="start or settings"):
        PushConsumer("g", start="first", settings=PushConsumerSettings())
    with pytest.raises(InvalidSetting, match="start or settings"):
        LitePullConsumer("g", start="first", settings=LitePullConsumerSettings())
