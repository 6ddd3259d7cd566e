"""Records as clients receive them. Those of the official proxy are recorded in `conformance/grpc`."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pocketmq.grpc_endpoint.conversion.message_types import SYSTEM_PROPERTIES, type_of
from pocketmq.grpc_endpoint.conversion.received_message import set_message
from pocketmq.grpc_endpoint.messages import Encoding, Message, MessageType, ms_of
from pocketmq.grpc_endpoint.producing.sent_message import own_properties
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.properties import decode_properties, encode_properties
from pocketmq.protocol.message.record import Record

from grpc_client import encode


def properties(unique_id: str, topic: str = "NormalT", **more: str) -> dict[str, str]:
    """What the broker stores of a sent message."""
    return {
        "MSG_REGION": "DefaultRegion",
        "UNIQ_KEY": unique_id,
        "CLUSTER": "DefaultCluster",
        "PGROUP": topic,
        "RECONSUME_TIME": "0",
        "__BORNHOST": "myhost",
        "BORN_TIMESTAMP": "1790000000005",
        "TRACE_ON": "true",
        **more,
    }


def record(of: dict[str, str], **changes: object) -> Record:
    known = Record("NormalT", 0, 0, 0, b"body", encode_properties(of))
    hosts = {"born_host": pack_host("127.0.0.1", 40_000), "store_host": pack_host("127.0.0.1", 10_911)}
    return msgspec.structs.replace(known, **hosts, **changes)


def delivered(of: Record, topic: str, now_ms: int, receipt_handle: str | None = None) -> Message:
    """The message as a client reads it."""
    message = Message()
    properties = decode_properties(of.properties)
    set_message(message, of, topic, now_ms, properties, receipt_handle=receipt_handle)
    return message


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({}, MessageType.NORMAL),
        ({"__SHARDINGKEY": "g"}, MessageType.FIFO),
        ({"TIMER_DELIVER_MS": "1", "__SHARDINGKEY": "g"}, MessageType.DELAY),
        ({"DELAY": "3"}, MessageType.DELAY),
        ({"TRAN_MSG": "true", "DELAY": "3"}, MessageType.TRANSACTION),
        ({"TRAN_MSG": "false"}, MessageType.NORMAL),
        ({"_SYS_MSG_PRIORITY_": "1", "__LITE_TOPIC": "l"}, MessageType.PRIORITY),
        ({"__LITE_TOPIC": "l"}, MessageType.LITE),
    ],
)
def test_properties_say_the_type(more: dict[str, str], kind: MessageType) -> None:
    assert MessageType[type_of(properties("id", **more))] == kind


def test_message_of_a_remoting_producer() -> None:
    of = {"KEYS": "a b", "_SYS_MSG_PRIORITY_": "7", "TIMER_DELAY_SEC": "5", "WAIT": "true", "mine": "1"}
    message = delivered(record(of, sys_flag=0x1, reconsume_times=2), "NormalT", 1000)
    system = message.system_properties
    assert system.message_id == "7F00000100002A9F0000000000000000"
    assert (system.born_host, system.body_encoding) == ("127.0.0.1", Encoding.GZIP)
    assert (list(system.keys), system.priority, system.delivery_attempt) == (["a", "b"], 7, 3)
    assert system.HasField("delivery_timestamp")
    assert ms_of(system.delivery_timestamp) == 6000
    assert not system.HasField("tag")
    assert own_properties(message) == {"mine": "1"}


def test_dead_letter_names_its_origin() -> None:
    of = properties("id", DLQ_ORIGIN_TOPIC="t", DLQ_ORIGIN_MESSAGE_ID="m")
    letter = delivered(record(of), "NormalT", 0).system_properties.dead_letter_queue
    assert (letter.topic, letter.message_id) == ("t", "m")


@pytest.mark.parametrize(
    ("topic", "namespace", "name"),
    [("t", "", "t"), ("ns%t", "ns", "t"), ("%RETRY%g", "", "%RETRY%g"), ("%DLQ%g", "", "%DLQ%g")],
)
def test_namespace_of_a_stored_topic(topic: str, namespace: str, name: str) -> None:
    resource = delivered(record({}), topic, 0).topic
    assert (resource.resource_namespace, resource.name) == (namespace, name)


# -- any record


def separated(pairs: Sequence[tuple[str, str]]) -> bytes:
    return "".join(f"{name}\1{value}\2" for name, value in pairs).encode()


SHORT = st.text(st.characters(codec="utf-8", categories=("L", "N", "Cc", "Zs")), max_size=6)
VALUES = st.one_of(SHORT, st.from_regex("[0-9]{1,21}|true|a b  c", fullmatch=True), st.just("v" * 200))
NAMES = st.one_of(st.sampled_from(sorted(SYSTEM_PROPERTIES | {"__SHARDINGKEY", "TRACE_CONTEXT"})), SHORT)
TEXTS = st.one_of(
    st.lists(st.tuples(NAMES, VALUES), max_size=12).map(separated),
    st.lists(st.sampled_from([b"\1", b"\2", b"TAGS", b"KEYS", b"x", b"\xc3", "ü".encode()])).map(b"".join),
    st.binary(max_size=60),
)
HOSTS = st.one_of(
    st.binary(min_size=6, max_size=6).map(lambda data: data[:4] + b"\0\0" + data[4:]),
    st.binary(min_size=18, max_size=18).map(lambda data: data[:16] + b"\0\0" + data[16:]),
)
LONG = st.integers(-(1 << 63), (1 << 63) - 1)
INT = st.integers(-(1 << 31), (1 << 31) - 1)
TIMES = st.one_of(st.integers(0, 1 << 44), st.integers(-(1 << 44), 1 << 44))
RECORDS = st.builds(
    Record,
    topic=st.just("T"),
    queue_id=INT,
    queue_offset=LONG,
    position=LONG,
    body=st.one_of(st.binary(max_size=20), st.just(bytes(20_000))),
    properties=TEXTS,
    sys_flag=st.sampled_from([0, 1, 0x10]),
    born_timestamp=TIMES,
    born_host=HOSTS,
    store_timestamp=TIMES,
    store_host=HOSTS,
    reconsume_times=st.integers(-1, 40),
)
USUAL = Record("T", 1, 2, 3, b"x", separated([("UNIQ_KEY", "0A1B"), ("u", "1"), ("TAGS", "A"), ("u", "2")]))


@given(
    RECORDS,
    st.sampled_from(["T", "ns%T", "%RETRY%g"]),
    st.one_of(st.none(), st.text("0123456789 ", min_size=1), st.just("1" * 200)),
    st.one_of(st.none(), st.integers(-1, 200), st.just((1 << 31) - 1)),
)
@example(USUAL, "T", "1 2 3", None)
def test_any_record_becomes_a_message(of: Record, topic: str, handle: str | None, times: int | None) -> None:
    """Whatever producers of any protocol have put into its text."""
    viewed = msgspec.structs.replace(of, body=memoryview(of.body), properties=memoryview(of.properties))
    properties = decode_properties(viewed.properties)
    message = Message()
    set_message(message, viewed, topic, 1000, properties, receipt_handle=handle, reconsume_times=times)
    system = message.system_properties
    assert message.body == of.body
    assert own_properties(message) == {n: v for n, v in properties.items() if n not in SYSTEM_PROPERTIES}
    assert (system.queue_id, system.queue_offset) == (of.queue_id, of.queue_offset)
    assert (ms_of(system.born_timestamp), ms_of(system.store_timestamp)) == (
        of.born_timestamp,
        of.store_timestamp,
    )
    assert (system.message_type, system.tag) == (MessageType[type_of(properties)], properties.get("TAGS", ""))
    assert system.HasField("receipt_handle") == (handle is not None)
    assert Message.FromString(encode(message)) == message
