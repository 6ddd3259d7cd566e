"""Requests as bytes: what is refused, what a hostile one may take, and what is kept of unusual ones."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.grpc_endpoint import messages as m
from pocketmq.grpc_endpoint.messages.decoding import UNCOUNTED_BYTES, VALUES, MalformedMessage, decode
from pocketmq.grpc_endpoint.messages.service import MESSAGING

from grpc_client import encode
from random_messages import any_message

KINDS = sorted({kind for rpc in MESSAGING for kind in (rpc.request, rpc.reply)}, key=str)
LONG = b"\xa2\x3f\x89\x27" + bytes(UNCOUNTED_BYTES + 1)
"""An unknown field of so many bytes: its message is counted before it is decoded."""


@given(st.sampled_from(KINDS).flatmap(any_message))
def test_random_messages_are_read_as_written_counted_or_not(message: Any) -> None:
    data = encode(message)
    assert decode(type(message), data) == message
    assert decode(type(message), data + LONG).ListFields() == message.ListFields()


@given(st.sampled_from(KINDS), st.binary(max_size=60))
def test_random_bytes_that_are_counted_are_refused_by_both_or_read(kind: type[Any], data: bytes) -> None:
    """The count lets nothing pass that protobuf refuses; it refuses groups, which protobuf skips."""
    try:
        decode(kind, data)
    except MalformedMessage:
        with pytest.raises(MalformedMessage):
            decode(kind, LONG + data)


def test_the_parts_of_a_message_that_occurs_twice_are_merged() -> None:
    first = m.QueryRouteRequest(topic=m.Resource(resource_namespace="n"))
    second = m.QueryRouteRequest(topic=m.Resource(name="T"))
    both = decode(m.QueryRouteRequest, encode(first) + encode(second))
    assert both.topic == m.Resource(resource_namespace="n", name="T")


def test_unknown_values_of_enumerations_are_kept() -> None:
    request = decode(m.HeartbeatRequest, b"\x10\x63")
    assert request.client_type == 99
    assert encode(request) == b"\x10\x63"


def test_properties_keep_their_order() -> None:
    """It counts where two names share a bucket of Java's map."""
    names = [f"n{number}" for number in range(50)]
    data = b"".join(b"\x12" + bytes((len(name) + 2, 10, len(name))) + name.encode() for name in names)
    assert [entry.key for entry in decode(m.Message, data).user_properties] == names


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
        b"\x1b" * 101,
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
        "deep groups",
    ],
)
@pytest.mark.parametrize("before", [b"", LONG], ids=["short", "counted"])
def test_bytes_that_are_no_message_are_refused(before: bytes, data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode(m.QueryRouteRequest, before + data)


HOSTILE = {
    "empty messages": (m.SendMessageRequest, b"\x0a\x00"),
    "messages with empty properties": (m.SendMessageRequest, b"\x0a\x02\x1a\x00"),
    "empty properties": (m.SendMessageRequest, b"\x0a\x04\x12\x00\x12\x00"),
    "unknown fields": (m.SendMessageRequest, b"\x78\x00"),
    "keys": (m.SendMessageRequest, b"\x0a\x06\x1a\x04\x12\x00\x12\x00"),
    "settings": (m.TelemetryCommand, b"\x12\x04\x2a\x02\x0a\x00"),
}


@pytest.mark.parametrize(("kind", "piece"), HOSTILE.values(), ids=HOSTILE)
def test_too_many_values_are_refused(kind: type[Any], piece: bytes) -> None:
    with pytest.raises(MalformedMessage, match="more than 10000 values"):
        decode(kind, piece * (VALUES + 1))


@pytest.mark.parametrize(("kind", "piece"), HOSTILE.values(), ids=HOSTILE)
def test_a_request_takes_eight_times_its_size_and_a_mebibyte_at_most(kind: type[Any], piece: bytes) -> None:
    """The longest that is decoded without being counted, and one of all values. Measured in a process of its own."""
    values = len(piece) if kind is not m.SendMessageRequest or piece[0] == 0x0A else len(piece) // 2
    for data in (piece * (UNCOUNTED_BYTES // len(piece)), piece * (VALUES // values)):
        program = (
            "import sys, resource\n"
            "from pocketmq.grpc_endpoint import messages as m\n"
            "from pocketmq.grpc_endpoint.messages.decoding import decode\n"
            f"kind, data = m.{kind.__name__}, bytes.fromhex(sys.stdin.read())\n"
            "decode(kind, data[:0])\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "kept = [decode(kind, data) for _ in range(50)]\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], input=data.hex(), capture_output=True, text=True, check=True
        )
        assert int(done.stdout) * 1024 / 50 < 8 * len(data) + (1 << 20)


def test_the_official_classes_may_be_in_the_same_process() -> None:
    """The official Python client registers its files, of the same names and packages, in the default pool."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.Default()
    package = "apache.rocketmq.v2"
    for name in ("definition", "service"):
        theirs = descriptor_pb2.FileDescriptorProto(name=f"apache/rocketmq/v2/{name}.proto", package=package)
        theirs.message_type.add(name="Resource" if name == "definition" else "QueryRouteRequest")
        pool.AddSerializedFile(theirs.SerializeToString())
    found = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.Resource"))
    assert found is not m.Resource
    assert [field.name for field in found.DESCRIPTOR.fields] == []
    assert m.Resource(name="T").SerializeToString() == b"\x12\x01T"
    assert found.FromString(b"\x12\x01T").SerializeToString() == b"\x12\x01T"
