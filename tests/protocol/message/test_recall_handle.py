"""Recall handles, compared with those of the official client."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.recall_handle import RecallHandle, decode_recall_handle

from client_vectors import feature_vectors


def test_handles_are_read_as_by_the_official_client() -> None:
    ((handle,), expected) = feature_vectors("handle")[0]
    assert decode_recall_handle(handle or "").encode() == handle
    assert decode_recall_handle(handle or "") == RecallHandle(*(expected or "").split(" "))
    assert decode_recall_handle((handle or "").rstrip("=")).topic == "T"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "v1",
        *(base64.b64encode(one).decode() for one in (b"v2 T b 1 A", b"v1 T b 1", b"\xff")),
    ],
)
def test_texts_that_are_no_handles_are_refused(text: str) -> None:
    with pytest.raises(BodyError, match="recall handle is invalid"):
        decode_recall_handle(text)


@given(st.text())
def test_no_text_raises_another_error_than_a_refusal(text: str) -> None:
    try:
        decode_recall_handle(text)
    except BodyError:
        pass
