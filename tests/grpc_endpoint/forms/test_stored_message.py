"""Records as clients receive them, beside replies recorded from the official proxy 5.5.0, and beside the bytes of
messages that are built field by field."""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pocketmq.grpc_endpoint.forms.message_types import SYSTEM_PROPERTIES, type_of
from pocketmq.grpc_endpoint.forms.stored_message import (
    message_id_of,
    resource_of,
    stored_message,
    stored_properties,
    tag_of,
)
from pocketmq.grpc_endpoint.messages import (
    DeadLetterQueue,
    Digest,
    DigestType,
    Encoding,
    Message,
    MessageType,
    ReceiveMessageResponse,
    RecoverOrphanedTransactionCommand,
    SystemProperties,
    TelemetryCommand,
    Timestamp,
)
from pocketmq.grpc_endpoint.wire.decoding import decode
from pocketmq.grpc_endpoint.wire.encoding import encode
from pocketmq.protocol.message.offset_id import encode_message_id, pack_host, unpack_host
from pocketmq.protocol.message.properties import decode_properties, encode_properties
from pocketmq.protocol.message.record import Record

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
    assert system.store_timestamp is not None
    known = Record(
        topic=sent.topic.name,
        queue_id=system.queue_id,
        queue_offset=system.queue_offset or 0,
        position=0,
        body=sent.body,
        properties=encode_properties(of),
        born_timestamp=system.born_timestamp.ms,
        born_host=pack_host("127.0.0.1", 40_000),
        store_timestamp=system.store_timestamp.ms,
        store_host=pack_host("127.0.0.1", 10_911),
    )
    return msgspec.structs.replace(known, **changes)


def delivered(of: Record, topic: str, now_ms: int, receipt_handle: str | None = None) -> Message:
    """The message as a client reads it."""
    handle = (receipt_handle or "").encode()
    data = stored_message(of, topic, now_ms, stored_properties(of), receipt_handle=handle)
    return decode(Message, data)


def test_plain_message_is_that_of_the_official_proxy() -> None:
    official = decode(ReceiveMessageResponse, PLAIN).message
    assert official is not None
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
    assert official is not None
    system = official.system_properties
    of = properties(system.message_id, u="1", TAGS="A", KEYS="k1 k2", TRACE_CONTEXT="tc")
    ours = delivered(
        record(of, official, store_host=_host(system.store_host)),
        "NormalT",
        0,
        receipt_handle=system.receipt_handle,
    )
    assert ours == official


def test_orphan_is_that_of_the_official_proxy() -> None:
    command = decode(TelemetryCommand, ORPHAN).recover_orphaned_transaction_command
    assert command is not None
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
    shown = RecoverOrphanedTransactionCommand(message=ours, transaction_id=system.message_id)
    assert shown == command


def _host(address: str) -> bytes:
    ip, _, port = address.rpartition(":")
    return pack_host(ip, int(port))


def plain() -> Message:
    message = decode(ReceiveMessageResponse, PLAIN).message
    assert message is not None
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
    assert type_of(properties("id", **more)) == kind


def test_message_of_a_remoting_producer() -> None:
    of = {"KEYS": "a b", "_SYS_MSG_PRIORITY_": "7", "TIMER_DELAY_SEC": "5", "WAIT": "true", "mine": "1"}
    message = delivered(record(of, plain(), sys_flag=0x1, reconsume_times=2), "NormalT", 1000)
    system = message.system_properties
    assert system.message_id == "7F00000100002A9F0000000000000000"
    assert (system.born_host, system.body_encoding) == ("127.0.0.1", Encoding.GZIP)
    assert (list(system.keys), system.priority, system.delivery_attempt) == (["a", "b"], 7, 3)
    assert system.delivery_timestamp is not None
    assert system.delivery_timestamp.ms == 6000
    assert system.tag is None
    assert dict(message.user_properties) == {"mine": "1"}


def test_dead_letter_names_its_origin() -> None:
    of = properties("id", DLQ_ORIGIN_TOPIC="t", DLQ_ORIGIN_MESSAGE_ID="m")
    letter = delivered(record(of, plain()), "NormalT", 0).system_properties.dead_letter_queue
    assert letter is not None
    assert (letter.topic, letter.message_id) == ("t", "m")


@pytest.mark.parametrize(
    ("topic", "namespace", "name"),
    [("t", "", "t"), ("ns%t", "ns", "t"), ("%RETRY%g", "", "%RETRY%g"), ("%DLQ%g", "", "%DLQ%g")],
)
def test_namespace_of_a_stored_topic(topic: str, namespace: str, name: str) -> None:
    resource = resource_of(topic)
    assert (resource.resource_namespace, resource.name) == (namespace, name)


# -- any record


def number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 20 else None


def due(properties: Mapping[str, str], now_ms: int) -> Timestamp | None:
    due_ms = number(properties.get("TIMER_DELIVER_MS"))
    delay_seconds = number(properties.get("TIMER_DELAY_SEC"))
    if due_ms is None and delay_seconds is not None:
        due_ms = now_ms + delay_seconds * 1000
    return None if due_ms is None else Timestamp.of_ms(due_ms)


def built(of: Record, topic: str, now_ms: int, handle: str | None, times: int | None) -> Message:
    """The message, field by field."""
    properties = decode_properties(of.properties)
    ip, port = unpack_host(of.store_host)
    letter = properties.get("DLQ_ORIGIN_TOPIC"), properties.get("DLQ_ORIGIN_MESSAGE_ID")
    system = SystemProperties(
        tag=properties.get("TAGS"),
        keys=properties["KEYS"].split(" ") if "KEYS" in properties else (),
        message_id=properties.get("UNIQ_KEY") or encode_message_id(of.store_host, of.position),
        body_digest=Digest(type=DigestType.MD5, checksum=hashlib.md5(of.body).hexdigest().upper()),
        body_encoding=Encoding.GZIP if of.sys_flag & 1 else Encoding.IDENTITY,
        message_type=type_of(properties),
        born_timestamp=Timestamp.of_ms(of.born_timestamp),
        born_host=properties.get("__BORNHOST") or unpack_host(of.born_host)[0],
        store_timestamp=Timestamp.of_ms(of.store_timestamp),
        store_host=f"{ip}:{port}",
        delivery_timestamp=due(properties, now_ms),
        receipt_handle=handle,
        queue_id=of.queue_id,
        queue_offset=of.queue_offset,
        delivery_attempt=(of.reconsume_times if times is None else times) + 1,
        message_group=properties.get("__SHARDINGKEY"),
        trace_context=properties.get("TRACE_CONTEXT"),
        dead_letter_queue=DeadLetterQueue(topic=letter[0], message_id=letter[1])
        if letter[0] is not None and letter[1] is not None
        else None,
        lite_topic=properties.get("__LITE_TOPIC"),
        priority=number(properties.get("_SYS_MSG_PRIORITY_")),
    )
    own = {name: value for name, value in properties.items() if name not in SYSTEM_PROPERTIES}
    return Message(
        topic=resource_of(topic), user_properties=own, system_properties=system, body=bytes(of.body)
    )


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
    st.one_of(st.none(), st.integers(-1, 200)),
)
@example(USUAL, "T", "1 2 3", None)
def test_any_record_is_the_message_built_field_by_field(
    of: Record, topic: str, handle: str | None, times: int | None
) -> None:
    viewed = msgspec.structs.replace(of, body=memoryview(of.body), properties=memoryview(of.properties))
    properties = stored_properties(viewed)
    data = stored_message(
        viewed, topic, 1000, properties, receipt_handle=(handle or "").encode(), reconsume_times=times
    )
    plain = built(of, topic, 1000, handle, times)
    assert data == encode(plain)
    assert message_id_of(viewed, properties).decode() == plain.system_properties.message_id
    assert tag_of(properties) == plain.system_properties.tag
