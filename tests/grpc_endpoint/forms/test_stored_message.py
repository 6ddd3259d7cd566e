"""Records as clients receive them, beside replies recorded from the official proxy 5.5.0."""

import msgspec
import pytest
from pocketmq.grpc_endpoint.forms.message_types import type_of
from pocketmq.grpc_endpoint.forms.stored_message import resource_of, stored_message
from pocketmq.grpc_endpoint.messages import (
    Encoding,
    Message,
    MessageType,
    ReceiveMessageResponse,
    RecoverOrphanedTransactionCommand,
    TelemetryCommand,
)
from pocketmq.grpc_endpoint.wire.decoding import decode
from pocketmq.grpc_endpoint.wire.encoding import encode
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.properties import encode_properties
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


def test_plain_message_is_that_of_the_official_proxy() -> None:
    official = decode(ReceiveMessageResponse, PLAIN).message
    assert official is not None
    system = official.system_properties
    ours = stored_message(
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
    ours = stored_message(
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
    ours = stored_message(record(of, command.message, store_host=_host(system.store_host)), "TransT", 0)
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
    message = stored_message(record(of, plain(), sys_flag=0x1, reconsume_times=2), "NormalT", 1000)
    system = message.system_properties
    assert system.message_id == "7F00000100002A9F0000000000000000"
    assert (system.born_host, system.body_encoding) == ("127.0.0.1", Encoding.GZIP)
    assert (list(system.keys), system.priority, system.delivery_attempt) == (["a", "b"], 7, 3)
    assert system.delivery_timestamp is not None
    assert system.delivery_timestamp.ms == 6000
    assert system.tag is None
    assert message.user_properties == {"mine": "1"}


def test_dead_letter_names_its_origin() -> None:
    of = properties("id", DLQ_ORIGIN_TOPIC="t", DLQ_ORIGIN_MESSAGE_ID="m")
    letter = stored_message(record(of, plain()), "NormalT", 0).system_properties.dead_letter_queue
    assert letter is not None
    assert (letter.topic, letter.message_id) == ("t", "m")


@pytest.mark.parametrize(
    ("topic", "namespace", "name"),
    [("t", "", "t"), ("ns%t", "ns", "t"), ("%RETRY%g", "", "%RETRY%g"), ("%DLQ%g", "", "%DLQ%g")],
)
def test_namespace_of_a_stored_topic(topic: str, namespace: str, name: str) -> None:
    resource = resource_of(topic)
    assert (resource.resource_namespace, resource.name) == (namespace, name)
