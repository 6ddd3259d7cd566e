"""Records as clients receive them, beside replies recorded from the official proxy 5.5.0."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pocketmq.grpc_endpoint.conversion.message_types import SYSTEM_PROPERTIES, type_of
from pocketmq.grpc_endpoint.conversion.received_message import set_message
from pocketmq.grpc_endpoint.messages import (
    Encoding,
    Message,
    MessageType,
    ReceiveMessageResponse,
    TelemetryCommand,
    ms_of,
)
from pocketmq.grpc_endpoint.messages.decoding import decode
from pocketmq.grpc_endpoint.producing.sent_message import own_properties
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.properties import decode_properties, encode_properties
from pocketmq.protocol.message.record import Record

from grpc_client import encode

PLAIN = bytes.fromhex(
    "12c9010a0912074e6f726d616c541ab3011a2230314141424243434444454546463030313132323333343435353636303030"
    "3030322224080212204339454539413333424535374334313235454537343245453637463638434646280130013a0b0880f7"
    "c4d50610c096b10242066d79686f73744a0c08acb38dd80610c0f5e49503520f3132372e302e302e313a3130393131622a30"
    "2031373935333831363736383732203630303030203020302062726f6b65722d61203020302033323870008001012206626f"
    "64792d32"
)
TAGGED = bytes.fromhex(
    "12f6010a0912074e6f726d616c5412130a0d54524143455f434f4e544558541202746312060a01751201311ac3010a014112"
    "026b3112026b321a223031414142424343444445454646303031313232333334343535363630303030303122240802122034"
    "39373833454230303935333735433137363535434443314646333239383734280130013a0b0880f7c4d50610c096b1024206"
    "6d79686f73744a0c08acb38dd80610c09cc5c802520f3132372e302e302e313a313039313162283020313739353338313637"
    "36383732203630303030203020302062726f6b65722d612031203020306801700080010192010274632206626f64792d31"
)
ORPHAN = bytes.fromhex(
    "2ac1020a9a020a0812065472616e735412370a115f5f7472616e73616374696f6e49645f5f12223031414142424343444445"
    "454646303031313232333334343535363630303030303212230a1e434845434b5f494d4d554e4954595f54494d455f494e5f"
    "5345434f4e4453120131121c0a175452414e53414354494f4e5f434845434b5f54494d455312013112060a016b1201761a85"
    "010a01541a223031414142424343444445454646303031313232333334343535363630303030303222240802122030463832"
    "36413839434636384333393943354634434633323043314135383432280130013a060898b58dd80642066d79686f73744a0c"
    "0898b58dd80610c0b2e8a903520f3132372e302e302e313a3130393131700180010122027432122230314141424243434444"
    "454546463030313132323333343435353636303030303032"
)


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


def record(of: dict[str, str], sent: Message, **changes: object) -> Record:
    """The record that the official reply was made of, as far as the reply says."""
    system = sent.system_properties
    known = Record(
        topic=sent.topic.name,
        queue_id=system.queue_id,
        queue_offset=system.queue_offset,
        position=0,
        body=sent.body,
        properties=encode_properties(of),
        born_timestamp=ms_of(system.born_timestamp),
        born_host=pack_host("127.0.0.1", 40_000),
        store_timestamp=ms_of(system.store_timestamp),
        store_host=pack_host("127.0.0.1", 10_911),
    )
    return msgspec.structs.replace(known, **changes)


def delivered(of: Record, topic: str, now_ms: int, receipt_handle: str | None = None) -> Message:
    """The message as a client reads it."""
    message = Message()
    properties = decode_properties(of.properties)
    set_message(message, of, topic, now_ms, properties, receipt_handle=receipt_handle)
    return message


def ordered(message: Message) -> Message:
    """With its own properties by name: the official proxy sends them as a map, which has no order."""
    found = Message()
    found.CopyFrom(message)
    own = sorted(own_properties(message).items())
    del found.user_properties[:]
    for name, value in own:
        found.user_properties.add(key=name, value=value)
    return found


def test_plain_message_is_that_of_the_official_proxy() -> None:
    official = decode(ReceiveMessageResponse, PLAIN).message
    system = official.system_properties
    ours = delivered(
        record(properties(system.message_id), official, store_host=_host(system.store_host)),
        "NormalT",
        0,
        receipt_handle=system.receipt_handle,
    )
    assert ours == official
    assert encode(ReceiveMessageResponse(message=ours)) == PLAIN


def test_tagged_message_is_that_of_the_official_proxy() -> None:
    official = decode(ReceiveMessageResponse, TAGGED).message
    system = official.system_properties
    of = properties(system.message_id, u="1", TAGS="A", KEYS="k1 k2", TRACE_CONTEXT="tc")
    ours = delivered(
        record(of, official, store_host=_host(system.store_host)),
        "NormalT",
        0,
        receipt_handle=system.receipt_handle,
    )
    assert ordered(ours) == ordered(official)


def test_orphan_is_that_of_the_official_proxy() -> None:
    command = decode(TelemetryCommand, ORPHAN).recover_orphaned_transaction_command
    system = command.message.system_properties
    of = properties(
        system.message_id,
        "TransT",
        k="v",
        TAGS="T",
        REAL_TOPIC="TransT",
        REAL_QID="0",
        CHECK_IMMUNITY_TIME_IN_SECONDS="1",
        TRANSACTION_CHECK_TIMES="1",
        __transactionId__=system.message_id,
    )
    ours = delivered(record(of, command.message, store_host=_host(system.store_host)), "TransT", 0)
    assert command.transaction_id == system.message_id
    assert ordered(ours) == ordered(command.message)


def _host(address: str) -> bytes:
    ip, _, port = address.rpartition(":")
    return pack_host(ip, int(port))


def plain() -> Message:
    return decode(ReceiveMessageResponse, PLAIN).message


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
    message = delivered(record(of, plain(), sys_flag=0x1, reconsume_times=2), "NormalT", 1000)
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
    letter = delivered(record(of, plain()), "NormalT", 0).system_properties.dead_letter_queue
    assert (letter.topic, letter.message_id) == ("t", "m")


@pytest.mark.parametrize(
    ("topic", "namespace", "name"),
    [("t", "", "t"), ("ns%t", "ns", "t"), ("%RETRY%g", "", "%RETRY%g"), ("%DLQ%g", "", "%DLQ%g")],
)
def test_namespace_of_a_stored_topic(topic: str, namespace: str, name: str) -> None:
    resource = delivered(record({}, plain()), topic, 0).topic
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
