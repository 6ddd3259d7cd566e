"""Our codec beside the official protobuf library: random messages, random bytes, and every limit."""

from typing import Any

import msgspec
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.grpc_endpoint import messages
from pocketmq.grpc_endpoint.messages.service import MESSAGING
from pocketmq.grpc_endpoint.wire.declare import Message, fields_of, is_present
from pocketmq.grpc_endpoint.wire.decoding import decode
from pocketmq.grpc_endpoint.wire.encoding import encode, varint
from pocketmq.grpc_endpoint.wire.limits import DEPTH, VALUES, MalformedMessage

from protobuf_oracle import any_message, official, same

KINDS: list[type[Message]] = sorted({kind for rpc in MESSAGING for kind in (rpc.request, rpc.reply)}, key=str)


@settings(max_examples=150)
@given(st.sampled_from(KINDS).flatmap(any_message))
def test_random_messages_are_read_as_the_official_library_wrote_them_and_back(message: Message) -> None:
    data = encode(message)
    theirs = official(type(message)).FromString(data)
    assert same(message, theirs)
    written = theirs.SerializeToString()
    assert len(written) == len(data)
    read = decode(type(message), written)
    assert same(read, theirs)
    assert encode(decode(type(message), data)) == data


@settings(max_examples=300)
@given(st.sampled_from(KINDS), st.binary(max_size=60))
def test_random_bytes_are_refused_by_both_or_read_alike(kind: type[Message], data: bytes) -> None:
    _compare(kind, data)


@settings(max_examples=200)
@given(st.sampled_from(KINDS).flatmap(any_message), st.data())
def test_damaged_messages_are_refused_by_both_or_read_alike(message: Message, data: Any) -> None:
    """Cut, doubled, one byte changed: repeated fields, merged messages, wrong wire types, bad lengths."""
    whole = encode(message)
    place = data.draw(st.integers(0, len(whole)))
    change = data.draw(st.sampled_from(("cut", "double", "flip", "insert")))
    if change == "cut":
        damaged = whole[:place]
    elif change == "double":
        damaged = whole + whole[place:] + whole
    else:
        byte = bytes((data.draw(st.integers(0, 255)),))
        damaged = whole[:place] + byte + whole[place + (change == "flip") :]
    _compare(type(message), damaged)


def _compare(kind: type[Message], data: bytes) -> None:
    try:
        theirs = official(kind).FromString(data)
    except DecodeError:
        theirs = None
    try:
        ours = decode(kind, data)
    except MalformedMessage:
        assert theirs is None
        return
    if theirs is not None:
        assert same(ours, theirs)


def test_a_message_inside_one_that_occurs_twice_is_merged() -> None:
    first = messages.QueryRouteRequest(topic=messages.Resource(resource_namespace="n"))
    second = messages.QueryRouteRequest(topic=messages.Resource(name="T"))
    both = decode(messages.QueryRouteRequest, encode(first) + encode(second))
    assert both.topic == messages.Resource(resource_namespace="n", name="T")


def test_the_last_member_of_a_oneof_wins() -> None:
    status = messages.ReceiveMessageResponse(status=messages.OK)
    body = messages.ReceiveMessageResponse(message=messages.Message(body=b"x"))
    found = decode(messages.ReceiveMessageResponse, encode(status) + encode(body))
    assert found.status is None
    assert found.message is not None


def test_an_absent_message_reads_as_an_empty_one_and_is_not_written() -> None:
    empty = decode(messages.QueryRouteRequest, b"")
    assert empty.topic.name == ""
    assert not is_present(empty, "topic")
    assert encode(empty) == b""
    sent = decode(messages.QueryRouteRequest, b"\x0a\x00")
    assert is_present(sent, "topic")
    assert encode(sent) == b"\x0a\x00"


def test_unknown_values_of_enumerations_are_kept() -> None:
    request = decode(messages.HeartbeatRequest, b"\x10\x63")
    assert request.client_type == 99
    assert encode(request) == b"\x10\x63"


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",
        b"\x0a\x05ab",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x80",
        b"\x00\x00",
        b"\x0f",
        b"\x0b",
        b"\x0c",
        b"\x0b\x14",
        b"\xff" * 11,
        b"\x0a\x03\x12\x01\xff",
        b"\x15\x01\x02",
    ],
    ids=[
        "length missing",
        "truncated",
        "length beyond 2^63",
        "tag cut",
        "field 0",
        "wire type 7",
        "group without end",
        "end without group",
        "another group's end",
        "endless number",
        "not UTF-8",
        "fixed number cut",
    ],
)
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode(messages.QueryRouteRequest, data)


def test_deep_groups_and_many_values_are_refused() -> None:
    """A million empty messages are two megabytes on the wire and some hundred in memory."""
    with pytest.raises(MalformedMessage, match="deep"):
        decode(messages.QueryRouteRequest, b"\x1b" * (DEPTH + 1))
    with pytest.raises(MalformedMessage, match="values"):
        decode(messages.SendMessageRequest, b"\x0a\x00" * (VALUES + 1))
    with pytest.raises(MalformedMessage, match="values"):
        decode(messages.MessageQueue, b"\x2a" + varint(VALUES + 1) + bytes(VALUES + 1))
    with pytest.raises(MalformedMessage, match="values"):
        decode(messages.SendMessageRequest, b"\x78\x00" * (VALUES + 1))


def test_declarations_that_say_too_little_fail() -> None:
    class Numberless(Message, frozen=True, kw_only=True):
        name: str = ""

    class Twice(Message, frozen=True, kw_only=True):
        a: msgspec.UnsetType | None = None

    with pytest.raises(TypeError, match=r"Numberless\.name has no field number"):
        fields_of(Numberless)
    with pytest.raises(TypeError, match=r"Twice\.a has no field number"):
        fields_of(Twice)


def test_the_list_of_a_merged_message_is_not_that_of_an_earlier_request() -> None:
    """Queues recur, so that decoded ones are kept: the second piece of a field must not be added to a kept one."""
    piece = encode(messages.MessageQueue(id=1, accept_message_types=[messages.MessageType.NORMAL]))
    of_broker = encode(
        messages.ReceiveMessageRequest(message_queue=messages.MessageQueue(id=1, broker=_BROKER))
    )
    queue = b"\x12" + varint(len(piece)) + piece
    for once in (queue, of_broker):
        before = decode(messages.ReceiveMessageRequest, once)
        twice = decode(messages.ReceiveMessageRequest, once + once)
        assert decode(messages.ReceiveMessageRequest, once) == before != twice


_BROKER = messages.Broker(name="b", endpoints=messages.Endpoints(addresses=[messages.Address(host="h")]))
