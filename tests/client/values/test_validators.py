"""Refusals of names and messages, with the official texts."""

from collections.abc import Callable

import pytest
from pocketmq.client.errors import ValidationFailed
from pocketmq.client.values.validators import (
    check_consumer_group,
    check_group,
    check_message,
    check_producer_group,
    check_send_topic,
    check_topic,
)
from pocketmq.protocol.message.topics import is_system_topic

from client_vectors import plain, refusal, vectors


def outcome(check: Callable[[], None]) -> tuple[str, str] | None:
    try:
        check()
    except ValidationFailed as error:
        return str(error.code), str(error)
    return None


def refuse_system_topic(topic: str) -> None:
    """Java's Validators.isSystemTopic, by our rule of which topics are the system's."""
    if is_system_topic(topic):
        raise ValidationFailed(f"The topic[{topic}] is conflict with system topic.")


@pytest.mark.parametrize(
    ("rule", "check"),
    [
        ("check-group", check_group),
        ("check-topic", check_topic),
        ("check-system-topic", refuse_system_topic),
        ("check-send-topic", check_send_topic),
    ],
)
def test_names_are_refused_as_in_java(rule: str, check: Callable[[str], None]):
    for encoded, recorded in vectors(rule):
        name = plain(encoded)
        assert outcome(lambda name=name: check(name)) == refusal(recorded), repr(name)  # type: ignore[misc]


@pytest.mark.parametrize(("asked", "recorded"), vectors("check-message"))
def test_messages_are_refused_as_in_java(asked: str, recorded: str):
    topic, size, multi_dispatch = asked.split(";")
    body = None if size == "-1" else bytes(int(size))
    properties = {"INNER_MULTI_DISPATCH": multi_dispatch} if multi_dispatch else None
    assert outcome(lambda: check_message(topic, body, max_message_size=16, properties=properties)) == refusal(
        recorded
    )


def test_a_body_of_text_is_refused_by_its_type():
    with pytest.raises(ValidationFailed, match="the message body must be bytes, not str"):
        check_message("t", "text", max_message_size=16)  # type: ignore[arg-type]


def test_a_view_is_measured_in_bytes():
    view = memoryview(bytes(20)).cast("i")
    with pytest.raises(ValidationFailed, match="MAX: 16"):
        check_message("t", view, max_message_size=16)
    check_message("t", bytearray(16), max_message_size=16)


@pytest.mark.parametrize(
    ("rule", "check", "group"),
    [
        ("check-producer", check_producer_group, "DEFAULT_PRODUCER"),
        ("check-push", check_consumer_group, "DEFAULT_CONSUMER"),
        ("check-lite", check_consumer_group, "DEFAULT_CONSUMER"),
    ],
)
def test_placeholder_groups_are_refused_as_in_java(rule: str, check: Callable[[str], None], group: str):
    (recorded,) = [result for asked, result in vectors(rule) if asked.endswith(f"Group={group}")]
    assert outcome(lambda: check(group)) == refusal(recorded)
    check("orders")
    with pytest.raises(ValidationFailed, match="blank"):
        check("")
