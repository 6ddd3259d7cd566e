"""A message has one delay."""

import pytest
from pocketmq.client import InvalidArgument, Message


@pytest.mark.parametrize("given", [("delay_level", "delay_ms"), ("delay_ms", "deliver_at_ms")])
def test_two_delays_of_a_message_are_refused(given: tuple[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="one of delay_level, delay_ms and deliver_at_ms"):
        Message("T", b"x", **dict.fromkeys(given, 3)).wire_properties()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["delay_level", "delay_ms", "deliver_at_ms"])
def test_one_delay_travels(name: str) -> None:
    assert "3" in Message("T", b"x", **{name: 3}).wire_properties().values()  # type: ignore[arg-type]
