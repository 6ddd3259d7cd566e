"""Every body against the JSON of the official classes (`vectors/`), and the two bodies that have a second form."""

import json
import zlib
from base64 import b64decode
from collections.abc import Callable
from typing import Any

import pytest
from pocketmq.protocol.bodies import registration
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.bodies.client import (
    ConsumerData,
    HeartbeatData,
    LockBatchRequestBody,
    MessageModel,
    SubscriptionData,
)
from pocketmq.protocol.bodies.offsets import (
    QueueTimeSpan,
    ResetOffsetBody,
    ResetOffsetBodyForC,
    local_time_text,
)
from pocketmq.protocol.bodies.pop import BatchAck, BatchAckMessageRequestBody, bit_set_of
from pocketmq.protocol.bodies.registration import decode_compressed_registration
from pocketmq.protocol.bodies.routes import BrokerData, QueueData, TopicRouteData
from pocketmq.protocol.bodies.topic_config import TopicConfig, from_text
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.text import fastjson

from official_vectors import NO_BODY_HERE, body_class, rows, rules


def shapes(version: str) -> list[Any]:
    return [
        pytest.param(name, text, id=f"{name}-{form}")
        for name, form, text in rows(f"bodies-{version}.tsv")
        if name not in NO_BODY_HERE
    ]


@pytest.mark.parametrize(("name", "text"), shapes("5.5.0"))
def test_body_of_5_5_0_is_read_and_written_byte_for_byte(name: str, text: str):
    assert fastjson.dumps(fastjson.decode(text, body_class(name))).decode() == text


@pytest.mark.parametrize(("name", "text"), shapes("4.9.8"))
def test_body_of_4_9_8_is_read_and_written_with_all_its_members(name: str, text: str):
    theirs = fastjson.loads(text)
    ours = fastjson.loads(fastjson.dumps(fastjson.decode(text, body_class(name))))
    assert contains(ours, theirs)


def contains(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        return all(key in ours and contains(ours[key], member) for key, member in theirs.items())
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(contains, ours, theirs))
    return bool(ours == theirs)


def test_members_only_newer_peers_write_are_skipped_even_with_unquoted_keys():
    text = '{"offsetTable":{"t@g":{0:5}},"pullOffsetTable":{"t@g":{0:7}}}'
    assert fastjson.decode(text, body_class("ConsumerOffsetSerializeWrapper")).offset_table == {"t@g": {0: 5}}


# --- heartbeat


def test_fingerprint_is_the_official_one():
    ((text, fingerprint),) = rules("5.5.0", "fingerprint")
    assert HeartbeatData.decode(text.encode()).fingerprint() == int(fingerprint)


def test_fingerprint_ignores_client_id_versions_and_order():
    def heartbeat(client_id: str, sub_version: int, *topics: str) -> HeartbeatData:
        subscriptions = [
            SubscriptionData(topic=topic, sub_string="*", sub_version=sub_version) for topic in topics
        ]
        consumer = ConsumerData(group_name="g", subscription_data_set=subscriptions)
        return HeartbeatData(client_id=client_id, consumer_data_set=[consumer])

    assert heartbeat("a", 1, "x", "y").fingerprint() == heartbeat("b", 2, "y", "x").fingerprint()
    assert heartbeat("a", 1, "x").fingerprint() != heartbeat("a", 1, "z").fingerprint()


def test_a_message_model_of_the_future_is_kept_as_text():
    data = fastjson.decode('{"groupName":"g","messageModel":"SOMETHING_NEW"}', ConsumerData)
    assert data.message_model == "SOMETHING_NEW"
    assert (
        fastjson.decode('{"messageModel":"CLUSTERING"}', ConsumerData).message_model
        == MessageModel.CLUSTERING
    )


def test_lock_request_of_a_4_9_client_has_no_only_this_broker():
    body = b'{"clientId":"c","consumerGroup":"g","mqSet":[{"brokerName":"b","queueId":0,"topic":"t"}]}'
    request = LockBatchRequestBody.decode(body)
    assert request.mq_set == [MessageQueue("t", "b", 0)]
    assert request.only_this_broker is False


# --- route dialects

ROUTE = TopicRouteData(
    broker_datas=[BrokerData(cluster="中", broker_name="b", broker_addrs={0: "1.2.3.4:10911"})],
    queue_datas=[QueueData(broker_name="b", read_queue_nums=4, write_queue_nums=4, perm=6)],
)


@pytest.mark.parametrize(
    ("version", "accept", "emulate", "key", "cluster"),
    [
        (400, False, 5, '{0:"', "中"),
        (0, False, 4, '{0:"', "中"),
        (401, False, 5, '{"0":"', "中"),
        (0, True, 5, '{"0":"', "中"),
        (401, False, 4, '{"0":"', "\\u4e2d"),
    ],
)
def test_route_dialect_depends_on_the_clients_version_and_request(
    version: int, accept: bool, emulate: int, key: str, cluster: str
):
    text = ROUTE.encode_for(version, accept_standard_json_only=accept, emulate=emulate).decode()
    assert f'"brokerAddrs":{key}1.2.3.4:10911"}}' in text
    assert f'"cluster":"{cluster}"' in text
    assert TopicRouteData.decode(text.encode()) == ROUTE


# --- registration


@pytest.mark.parametrize(("version", "ordinal"), [("4.9.8", 409), ("5.5.0", 513)])
def test_compressed_registration_of_the_official_broker_is_read(version: str, ordinal: int):
    ((_, encoded),) = rules(version, "registration")
    body = decode_compressed_registration(b64decode(encoded), ordinal)
    wrapper = body.topic_config_serialize_wrapper
    assert (wrapper.data_version.timestamp, wrapper.data_version.counter) == (1700000000123, 42)
    assert body.filter_server_list == ["10.0.0.1:1", "10.0.0.2:2"]
    orders = wrapper.topic_config_table["orders"]
    assert (orders.read_queue_nums, orders.write_queue_nums, orders.perm) == (8, 4, 6)
    assert set(wrapper.topic_config_table) == {"orders", "%RETRY%g"}
    if version == "5.5.0":
        assert orders.attributes == {"message.type": "FIFO"}
        assert wrapper.topic_queue_mapping_info_map["orders"].total_queues == 8


def test_registration_that_inflates_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registration, "MAX_REGISTRATION_BYTES", 1000)
    with pytest.raises(BodyError, match="more than 1000 bytes"):
        decode_compressed_registration(zlib.compress(bytes(10_000)), 513)


@pytest.mark.parametrize("version", ["4.9.8", "5.5.0"])
def test_official_topic_text_is_read(version: str):
    for name, text in rules(version, "topic-text"):
        config = from_text(text)
        numbers = [config.read_queue_nums, config.write_queue_nums, config.perm]
        assert [name, *map(str, numbers), config.topic_filter_type] == text.split(" ")[:5]
        assert config.attributes == json.loads(text.split(" ")[5] if version == "5.5.0" else "{}")


def test_topic_text_with_unreadable_attributes_keeps_the_topic():
    assert from_text("t 1 2 6 SINGLE_TAG {broken").attributes == {}


# --- offsets and acks


def test_reset_offsets_are_read_in_both_forms():
    queue = MessageQueue("t", "b", 3)
    body = ResetOffsetBody(offset_table={queue: 9})
    assert body.encode() == b'{"offsetTable":{{"brokerName":"b","queueId":3,"topic":"t"}:9}}'
    assert body.for_c().encode() == b'{"offsetTable":[{"brokerName":"b","offset":9,"queueId":3,"topic":"t"}]}'
    assert ResetOffsetBody.decode(body.encode()) == body
    rows = ResetOffsetBodyForC.decode(body.for_c().encode()).offset_table or []
    queues = {MessageQueue(row.topic or "", row.broker_name or "", row.queue_id): row.offset for row in rows}
    assert queues == body.offset_table


def test_time_span_carries_its_times_as_text():
    span = QueueTimeSpan.of(
        MessageQueue("t", "b", 0), min_time_stamp=0, max_time_stamp=1, consume_time_stamp=2, delay_time=3
    )
    assert span.min_time_stamp_str == local_time_text(0)
    assert local_time_text(1_700_000_000_007).endswith(":007")


def test_batch_ack_bits_are_offsets_from_the_start():
    # Recorded: BitSet {0, 9} is AQI=
    ack = fastjson.decode('{"b":"AQI=","so":100}', BatchAck)
    assert list(ack.offsets()) == [100, 109]
    assert list(ack.offsets(101, 109)) == [109]
    assert list(ack.offsets(100, 108)) == [100]
    assert bit_set_of([0, 9]) == b"\x01\x02"
    assert bit_set_of([]) == b""


@pytest.mark.parametrize(
    "ack",
    [
        '{"b":[1,-128],"c":"g","t":"t","so":5}',
        '{"bitSet":"AYA=","consumerGroup":"g","topic":"t","startOffset":5}',
        '{"b":"AYA=","c":"g","t":"t","so":5,"q":null}',
    ],
)
def test_batch_ack_is_read_with_long_names_and_number_arrays(ack: str):
    body = BatchAckMessageRequestBody.decode(f'{{"acks":[{ack}],"brokerName":"b"}}'.encode())
    assert body.acks == [BatchAck(consumer_group="g", topic="t", start_offset=5, bit_set=b"\x01\x80")]


def test_enums_of_a_heartbeat_may_be_ordinals_as_cpp_clients_give_them() -> None:
    text = (
        b'{"clientID":"c","consumerDataSet":[{"consumeFromWhere":4,"consumeType":1,"groupName":"g",'
        b'"messageModel":0,"subscriptionDataSet":[{"subVersion":"17","topic":"T"}]}]}\n'
    )
    (consumer,) = HeartbeatData.decode(text).consumer_data_set
    assert consumer.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    assert (consumer.consume_type, consumer.message_model) == ("CONSUME_PASSIVELY", "BROADCASTING")
    assert consumer.subscription_data_set[0].sub_version == 17


@pytest.mark.parametrize("number", [1 << 31, -(1 << 31) - 1, 10**40, "2147483648", "1_000", "x"])
@pytest.mark.parametrize("form", [TopicConfig, QueueData])
def test_a_number_that_java_would_not_read_is_refused(form: type[Body], number: object):
    """Official programs fail on a table that holds one."""
    with pytest.raises(BodyError, match="perm"):
        form.decode(fastjson.dumps({"perm": number}))


REGISTRATION = b64decode(rules("5.5.0", "registration")[0][1])
REFUSED = [
    (HeartbeatData.decode, (None, b""), "HeartbeatData: the body is missing"),
    (HeartbeatData.decode, (b'{"consumerDataSet":[{"consumeType":9}]}', b"[1]", b"{"), None),
    (ResetOffsetBody.decode, (b'{"offsetTable":7}',), None),
    (
        BatchAckMessageRequestBody.decode,
        (b'{"acks":[{"b":"***"}]}', b'{"acks":[{"b":["x"]}]}', b'{"acks":[{"so":[]}]}'),
        None,
    ),
    (
        lambda body: decode_compressed_registration(body, 513),
        (b"", b"x", REGISTRATION[: len(REGISTRATION) // 2], b"\0" + REGISTRATION),
        None,
    ),
    (from_text, ("", "t 1 2 6"), "topic record"),
    (
        from_text,
        ("T x 4 6 SINGLE_TAG", "T 1_0 4 6 SINGLE_TAG", "T 4 4 2147483648 SINGLE_TAG"),
        "topic record.*whole numbers",
    ),
]


@pytest.mark.parametrize(("read", "texts", "says"), REFUSED)
def test_what_is_no_body_is_refused(read: Callable[[Any], object], texts: tuple[Any, ...], says: str | None):
    for text in texts:
        with pytest.raises(BodyError, match=says):
            read(text)
