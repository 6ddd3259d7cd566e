"""What a message may be given as: text for bytes, several keys, a duration or a time; and one delay only."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pocketmq.client import ClientError, InvalidArgument, Message

LATER = datetime(2030, 1, 1, tzinfo=timezone(timedelta(hours=2)))
DELAYS: dict[str, Any] = {"delay_level": 3, "delay": timedelta(seconds=1.5), "deliver_at": LATER}


@pytest.mark.parametrize("given", [("delay_level", "delay"), ("delay", "deliver_at")])
def test_two_delays_of_a_message_are_refused(given: tuple[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="one of delay_level, delay and deliver_at"):
        Message("T", b"x", **{name: DELAYS[name] for name in given}).wire_properties()


@pytest.mark.parametrize(
    ("name", "travels"),
    [
        ("delay_level", ("DELAY", "3")),
        ("delay", ("TIMER_DELAY_MS", "1500")),
        ("deliver_at", ("TIMER_DELIVER_MS", "1893448800000")),
    ],
)
def test_one_delay_travels(name: str, travels: tuple[str, str]) -> None:
    message = Message("T", b"x", **{name: DELAYS[name]})
    assert message.is_delayed
    assert travels in message.wire_properties().items()


def test_a_time_without_a_zone_is_local_time() -> None:
    local = LATER.astimezone().replace(tzinfo=None)
    properties = Message("T", b"x", deliver_at=local).wire_properties()
    assert properties["TIMER_DELIVER_MS"] == str(int(LATER.astimezone(UTC).timestamp() * 1000))


def test_a_time_outside_of_the_calendar_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="cannot be sent"):
        Message(
            "T", b"x", deliver_at=datetime.max.replace(tzinfo=timezone(-timedelta(hours=2)))
        ).wire_properties()


def test_no_delay_at_all_is_no_delay() -> None:
    message = Message("T", b"x", delay=timedelta())
    assert not message.is_delayed
    assert list(message.wire_properties()) == ["WAIT"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"delay": 5}, "a timedelta, not int"),
        ({"delay": timedelta(seconds=-1)}, "must not be negative"),
        ({"deliver_at": 1_893_448_800_000}, "a datetime, not int"),
        ({"keys": 7}, "a text or texts"),
        ({"properties": "a=b"}, "a dict of texts, not str"),
        ({"delay_level": "3"}, "a whole number, not str"),
        ({"flag": "3"}, "flag must be a whole number, not str"),
        ({"keys": ["a", 7]}, "a text or texts"),
    ],
)
def test_wrong_types_are_refused_where_the_message_is_made(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ClientError, match=reason):
        Message("T", b"x", **given)


def test_a_body_may_be_text_and_keys_a_list() -> None:
    message = Message("T", "caf\u00e9", keys=["a", "b"])
    assert message.body == b"caf\xc3\xa9"
    assert message.keys == "a b"
