"""Which messages may form a batch, and how long lists are split."""

from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client.errors import ValidationFailed
from pocketmq.client.producing.batches import check_batch, element_bytes, split_batch
from pocketmq.protocol.message.batch import BatchElement, encode_batch

from client_vectors import refusal, vectors


class Sent(NamedTuple):
    topic: str
    properties: dict[str, str]


@pytest.mark.parametrize(("asked", "recorded"), vectors("check-batch"))
def test_batches_are_refused_as_in_java(asked: str, recorded: str):
    messages = []
    for text in asked.split(","):
        topic, *pairs = text.split(" ")
        properties = {name: value for name, _, value in (pair.partition("=") for pair in pairs)}
        messages.append(Sent(topic, {"WAIT": "true"} | properties))
    refused = refusal(recorded)
    if refused is None:
        check_batch(messages)
    else:
        with pytest.raises(ValidationFailed) as caught:
            check_batch(messages)
        assert str(caught.value) == f"Failed to initiate the MessageBatch: {refused[1]}"


@pytest.mark.parametrize("messages", [[], [Sent("t", {"DELAY": "soon"})]])
def test_lists_that_fail_in_java_are_refused(messages: list[Sent]):
    with pytest.raises(ValidationFailed, match=r"^Failed to initiate the MessageBatch"):
        check_batch(messages)


elements = st.builds(
    BatchElement, st.integers(0, 9), st.binary(min_size=1, max_size=100), st.binary(max_size=30)
)


@given(st.lists(elements, max_size=30), st.integers(100, 400))
def test_parts_fit_the_limit_and_keep_the_order(messages: list[BatchElement], max_bytes: int):
    runs = list(split_batch(messages, max_bytes))
    assert [element for run in runs for element in run] == messages
    for run in runs:
        size = sum(element_bytes(element) for element in run)
        assert len(encode_batch(run)) == size
        assert size <= max_bytes or len(run) == 1
    for run, following in pairwise(runs):
        assert sum(element_bytes(element) for element in [*run, following[0]]) > max_bytes


def test_a_message_that_fits_only_alone_gets_its_own_part():
    large, small = BatchElement(0, b"x" * 100, b""), BatchElement(0, b"x", b"")
    assert list(split_batch([small, large, small], 100)) == [[small], [large], [small]]


def test_a_body_over_the_limit_is_refused():
    with pytest.raises(ValidationFailed, match="the message body size over max value, MAX: 100") as caught:
        list(split_batch([BatchElement(0, b"x" * 101, b"")], 100))
    assert caught.value.code == 13
