"""Bytes of the official classes, and recordings of the official proxy: read and written alike."""

from typing import Any

import pytest
from pocketmq.grpc_endpoint import messages as m
from pocketmq.grpc_endpoint.messages.decoding import decode
from pocketmq.grpc_endpoint.messages.service import BY_NAME, MESSAGING, NOT_SERVED
from pocketmq.protocol.rpc_numbers import RPC_NUMBERS

from grpc_client import encode

T = m.Resource(name="T")
G = m.Resource(name="g")
ENDPOINTS = m.Endpoints(scheme=m.AddressScheme.IPv4, addresses=[m.Address(host="127.0.0.1", port=8081)])
BORN = m.timestamp_of(1_790_000_000_005)
PRODUCER = m.Settings(
    client_type=m.ClientType.PRODUCER,
    access_point=ENDPOINTS,
    backoff_policy=m.RetryPolicy(
        max_attempts=3,
        exponential_backoff=m.ExponentialBackoff(
            initial=m.duration_of(10), max=m.duration_of(1000), multiplier=2.0
        ),
    ),
    request_timeout=m.duration_of(3000),
    publishing=m.Publishing(topics=[T], max_body_size=4_194_304, validate_message_type=True),
    metric=m.Metric(),
)
HANDLE = "0 1795381676872 60000 0 0 broker-a 1 0 0"

VECTORS: list[tuple[Any, str]] = [
    (
        m.QueryRouteRequest(topic=T, endpoints=ENDPOINTS),
        "0a0312015412120801120e0a093132372e302e302e3110913f",
    ),
    (
        m.QueryRouteResponse(
            status=m.OK,
            message_queues=[
                m.MessageQueue(
                    topic=T,
                    permission=m.Permission.READ_WRITE,
                    broker=m.Broker(name="broker-a", endpoints=ENDPOINTS),
                    accept_message_types=[m.MessageType.NORMAL],
                )
            ],
        ),
        "0a0808a09c0112024f4b122a0a031201541804221e0a0862726f6b65722d611a120801120e0a093132372e302e302e3110913f2a0101",
    ),
    (
        m.QueryRouteResponse(status=m.Status(code=m.Code.TOPIC_NOT_FOUND, message="x")),
        "0a0708d2bb02120178",
    ),
    (
        m.QueryAssignmentResponse(
            status=m.OK,
            assignments=[
                m.Assignment(
                    message_queue=m.MessageQueue(
                        topic=T,
                        id=-1,
                        permission=m.Permission.READ_WRITE,
                        broker=m.Broker(name="b", endpoints=ENDPOINTS),
                    )
                )
            ],
        ),
        "0a0808a09c0112024f4b122d0a2b0a0312015410ffffffffffffffffff01180422170a01621a"
        "120801120e0a093132372e302e302e3110913f",
    ),
    (m.HeartbeatRequest(client_type=m.ClientType.PRODUCER), "1001"),
    (m.HeartbeatRequest(group=G, client_type=m.ClientType.PUSH_CONSUMER), "0a031201671002"),
    (m.NotifyClientTerminationRequest(group=G), "0a03120167"),
    (
        m.SendMessageRequest(
            messages=[
                m.Message(
                    topic=T,
                    user_properties=[{"key": "k", "value": "v"}],
                    system_properties=m.SystemProperties(
                        tag="A",
                        keys=["k1"],
                        message_id="01AABBCCDDEEFF001122334455667788FF",
                        body_encoding=m.Encoding.IDENTITY,
                        message_type=m.MessageType.NORMAL,
                        born_timestamp=BORN,
                        born_host="h",
                    ),
                    body=b"hi",
                )
            ]
        ),
        "0a520a0312015412060a016b1201761a3f0a014112026b311a2230314141424243434444454546463030313132323333343435353636"
        "373738384646280130013a0b0880f7c4d50610c096b10242016822026869",
    ),
    (
        m.SendMessageResponse(
            status=m.OK,
            entries=[m.SendResultEntry(status=m.OK, message_id="M", transaction_id="M", offset=7)],
        ),
        "0a0808a09c0112024f4b12120a0808a09c0112024f4b12014d1a014d2007",
    ),
    (
        m.TelemetryCommand(status=m.OK, settings=PRODUCER),
        "0a0808a09c0112024f4b1240080112120801120e0a093132372e302e302e3110913f1a14080312100a051080ade204120208011d0000"
        "0040220208032a0c0a03120154108080800218014200",
    ),
    (
        m.TelemetryCommand(
            settings=m.Settings(
                client_type=m.ClientType.PUSH_CONSUMER,
                subscription=m.Subscription(
                    group=G,
                    subscriptions=[
                        m.SubscriptionEntry(
                            topic=T,
                            expression=m.FilterExpression(type=m.FilterType.TAG, expression="*"),
                        )
                    ],
                    fifo=False,
                    receive_batch_size=32,
                    long_polling_timeout=m.duration_of(20_000),
                    lite_subscription_quota=2000,
                    max_lite_topic_size=64,
                ),
            )
        ),
        "1224080232200a03120167120c0a031201541205080112012a180020202a02081430d00f3840",
    ),
    (
        m.ReceiveMessageRequest(
            group=G,
            message_queue=m.MessageQueue(topic=T, id=-1, broker=m.Broker(name="b")),
            filter_expression=m.FilterExpression(type=m.FilterType.TAG, expression="*"),
            batch_size=32,
            auto_renew=True,
            long_polling_timeout=m.duration_of(20_000),
            attempt_id="a1",
        ),
        "0a0312016712150a0312015410ffffffffffffffffff0122030a01621a05080112012a202030013a02081442026131",
    ),
    (m.ReceiveMessageResponse(status=m.OK), "0a0808a09c0112024f4b"),
    (
        m.ReceiveMessageResponse(status=m.Status(code=m.Code.MESSAGE_NOT_FOUND, message="no new message")),
        "0a1408d1bb02120e6e6f206e6577206d657373616765",
    ),
    (m.ReceiveMessageResponse(delivery_timestamp=BORN), "1a0b0880f7c4d50610c096b102"),
    (
        m.AckMessageRequest(
            group=G, topic=T, entries=[m.AckMessageEntry(message_id="M", receipt_handle=HANDLE)]
        ),
        "0a0312016712031201541a2d0a014d1228302031373935333831363736383732203630303030203020302062726f6b65722d61203120"
        "302030",
    ),
    (
        m.ChangeInvisibleDurationRequest(
            group=G,
            topic=T,
            receipt_handle="H",
            invisible_duration=m.duration_of(30_000),
            message_id="M",
        ),
        "0a0312016712031201541a01482202081e2a014d",
    ),
    (
        m.EndTransactionRequest(
            topic=T,
            message_id="M",
            transaction_id="X",
            resolution=m.TransactionResolution.COMMIT,
            source=m.TransactionSource.SOURCE_SERVER_CHECK,
        ),
        "0a0312015412014d1a015820012802",
    ),
    (m.RecallMessageRequest(topic=T, recall_handle="H"), "0a03120154120148"),
    (m.ExponentialBackoff(multiplier=3.0), "1d00004040"),
]
"""A message and its bytes."""


@pytest.mark.parametrize(("message", "text"), VECTORS, ids=lambda value: type(value).__name__)
def test_bytes_are_the_official_ones(message: Any, text: str) -> None:
    assert encode(message).hex() == text
    assert decode(type(message), bytes.fromhex(text)) == message


RECORDED = {
    "plain": "12c9010a0912074e6f726d616c541ab3011a22303141414242434344444545464630303131323233333434353536363030303030"
    "322224080212204339454539413333424535374334313235454537343245453637463638434646280130013a0b0880f7c4d50610c096b102"
    "42066d79686f73744a0c08acb38dd80610c0f5e49503520f3132372e302e302e313a3130393131622a302031373935333831363736383732"
    "203630303030203020302062726f6b65722d61203020302033323870008001012206626f64792d32",
    "with tag": "12f6"
    "010a0912074e6f726d616c5412130a0d54524143455f434f4e544558541202746312060a01751201311ac3010a014112026b3112"
    "026b321a2230314141424243434444454546463030313132323333343435353636303030303031222408021220343937383345423030"
    "3935333735433137363535434443314646333239383734280130013a0b0880f7c4d50610c096b10242066d79686f73744a0c08acb38d"
    "d80610c09cc5c802520f3132372e302e302e313a31303931316228302031373935333831363736383732203630303030203020302062"
    "726f6b65722d612031203020306801700080010192010274632206626f64792d31",
}


@pytest.mark.parametrize("name", RECORDED)
def test_deliveries_of_the_official_proxy_are_written_alike(name: str) -> None:
    data = bytes.fromhex(RECORDED[name])
    reply = decode(m.ReceiveMessageResponse, data)
    assert reply.HasField("message")
    assert reply.message.system_properties.queue_offset == 0
    assert reply.message.system_properties.delivery_attempt == 1
    assert encode(reply) == data


def test_points_in_time_and_spans_go_to_milliseconds_and_back() -> None:
    for ms in (-1, 0, 1, 999, 1000, 1_790_000_000_005):
        assert m.ms_of(m.timestamp_of(ms)) == ms
        assert m.ms_of(m.duration_of(ms)) == ms
    assert m.duration_of(-1500) == m.Duration(seconds=-1, nanos=-500_000_000)


def test_every_rpc_of_the_service_is_known() -> None:
    assert {*BY_NAME, *NOT_SERVED} == {*RPC_NUMBERS}
    assert len(MESSAGING) == len(BY_NAME) == 12
    assert all(rpc.path == f"/apache.rocketmq.v2.MessagingService/{rpc.name}" for rpc in MESSAGING)


ORPHAN = (
    "2ac1020a9a020a0812065472616e735412370a115f5f7472616e73616374696f6e49645f5f1222303141414242434344444545464630"
    "3031313232333334343535363630303030303212230a1e434845434b5f494d4d554e4954595f54494d455f494e5f5345434f4e445312"
    "0131121c0a175452414e53414354494f4e5f434845434b5f54494d455312013112060a016b1201761a85010a01541a22303141414242"
    "434344444545464630303131323233333434353536363030303030322224080212203046383236413839434636384333393943354634"
    "434633323043314135383432280130013a060898b58dd80642066d79686f73744a0c0898b58dd80610c0b2e8a903520f3132372e302e"
    "302e313a3130393131700180010122027432122230314141424243434444454546463030313132323333343435353636303030303032"
)


def test_the_question_about_a_transaction_is_written_as_the_official_proxy_does() -> None:
    command = decode(m.TelemetryCommand, bytes.fromhex(ORPHAN))
    orphan = command.recover_orphaned_transaction_command
    assert orphan.message.topic.name == "TransT"
    assert not orphan.message.system_properties.HasField("receipt_handle")
    assert encode(command).hex() == ORPHAN
