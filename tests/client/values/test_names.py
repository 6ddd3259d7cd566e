"""A name that is no text is refused like any other wrong name."""

from collections.abc import Callable
from typing import Any

import pytest
from pocketmq.client import (
    InvalidArgument,
    LitePullConsumer,
    Producer,
    PullConsumer,
    PushConsumer,
    Requester,
    ValidationFailed,
)
from pocketmq.client.values.validators import check_message


@pytest.mark.parametrize("make", [Producer, Requester, PushConsumer, LitePullConsumer, PullConsumer])
@pytest.mark.parametrize("group", [None, 5, ["g"]])
def test_a_group_that_is_no_text_is_refused(make: Callable[..., Any], group: object) -> None:
    with pytest.raises(InvalidArgument, match="group must be text, not "):
        make(group)


@pytest.mark.parametrize("topic", [None, 5, ["T"]])
def test_a_topic_that_is_no_text_is_refused(topic: Any) -> None:
    with pytest.raises(ValidationFailed, match="a topic must be text, not "):
        check_message(topic, b"x", max_message_size=10)
    with pytest.raises(InvalidArgument, match="topic must be text, not "):
        LitePullConsumer("g").subscribe(topic)
