"""Replies pushed to the asking client: properties, codes and remarks are those of official 4.9.7 and 5.5.0 brokers."""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import PeerError
from pocketmq.broker.membership.consumer_groups import Client
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.message.properties import decode_properties, encode_properties_text
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC
from pocketmq.protocol.requests.send import SendReplyMessage, SendReplyMessageV2
from pocketmq.protocol.requests.to_client import PushReplyMessageToClient
from pocketmq.protocol.wire.command import Command

from broker_fakes import Asked, FakeConnection, MakeBroker, ask, connect, records, send_request

ASKER = "asker@1"
REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"
PROPERTIES = {
    "CORRELATION_ID": "c1",
    "REPLY_TO_CLIENT": ASKER,
    "TTL": "3000",
    "MSG_TYPE": "reply",
    "UNIQ_KEY": "U",
}
SENT_TEXT = (
    "MSG_TYPE\x01reply\x02REPLY_TO_CLIENT\x01asker@1\x02UNIQ_KEY\x01U\x02TTL\x013000\x02CORRELATION_ID\x01c1"
)


def asker(broker: Broker, answer: Command | PeerError | None = None) -> FakeConnection:
    connection = connect(broker)
    broker.membership.producers.register(
        "askers", Client(connection, ASKER, "JAVA", V5_5_0, broker.clock.now_ms())
    )
    if answer is not None:
        connection.answers_by_code[326] = answer
    return connection


async def reply(broker: Broker, named: dict[str, str], **changes: object) -> Asked:
    values = {"sys_flag": 1, "flag": 9, "properties": encode_properties_text(named), **changes}
    body = values.pop("body", b"answer")
    assert isinstance(body, bytes)
    return await ask(broker, send_request(REPLY_TOPIC, SendReplyMessage, **values), body)


async def test_reply_is_pushed_to_its_asker_and_stored(broker: Broker) -> None:
    connection = asker(broker, Command(0))
    answer = await reply(broker, PROPERTIES)
    assert (answer.code, answer.remark) == (0, None)
    ((push, body),) = connection.questions
    assert isinstance(push, PushReplyMessageToClient)
    assert (push.topic, push.queue_id, push.flag, push.sys_flag, body) == (REPLY_TOPIC, 0, 9, 1, b"answer")
    assert (push.born_host, push.store_host) == ("127.0.0.1:50000", "127.0.0.1:10911")
    told = decode_properties(push.properties or "")
    assert told == {
        **PROPERTIES,
        "PUSH_REPLY_TIME": str(broker.clock.now_ms()),
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
    }
    (stored,) = records(broker, REPLY_TOPIC)
    assert (stored.sys_flag, stored.flag, bytes(stored.body)) == (0, 9, b"answer")
    assert "PUSH_REPLY_TIME" not in decode_properties(stored.properties)
    assert answer.fields == {
        "msgId": f"7F00000100002A9F{stored.position:016X}",
        "queueId": "0",
        "queueOffset": "0",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
    }


async def test_4_9_stores_the_properties_as_they_came(broker4: Broker) -> None:
    asker(broker4, Command(0))
    assert (await reply(broker4, {}, properties=SENT_TEXT)).code == 0
    (stored,) = records(broker4, REPLY_TOPIC)
    assert bytes(stored.properties) == SENT_TEXT.encode()


async def test_the_asker_has_ten_seconds(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    asker(broker)
    assert (await reply(broker, PROPERTIES)).code == 1
    assert "did not answer PUSH_REPLY_MESSAGE_TO_CLIENT in 10 s" in caplog.text


async def test_tries_of_a_reply_are_stored(broker: Broker) -> None:
    asker(broker, Command(0))
    for times in (None, 3):
        assert (await reply(broker, PROPERTIES, reconsume_times=times)).code == 0
    assert [record.reconsume_times for record in records(broker, REPLY_TOPIC)] == [0, 3]


async def test_a_reply_with_a_delay_level_is_pushed_at_once_and_stored_later(broker: Broker) -> None:
    connection = asker(broker, Command(0))
    assert (await reply(broker, {**PROPERTIES, "DELAY": "3"})).code == 0
    assert len(connection.questions) == 1
    assert records(broker, REPLY_TOPIC) == []
    assert broker.store.max_offset(SCHEDULE_TOPIC, 2) == 1


async def test_not_stored_where_the_setting_says_so(broker: Broker) -> None:
    broker.config.store_reply_message_enable = False
    asker(broker, Command(0))
    got = await reply(broker, PROPERTIES)
    assert (got.code, got.fields["msgId"], got.fields["queueOffset"]) == (0, "0", "0")
    assert records(broker, REPLY_TOPIC) == []


async def test_short_form_is_the_same(broker: Broker) -> None:
    connection = asker(broker, Command(0))
    text = encode_properties_text(PROPERTIES)
    request = send_request(REPLY_TOPIC, SendReplyMessageV2, properties=text)
    assert (await ask(broker, request, b"v2")).code == 0
    assert len(connection.questions) == 1


@pytest.mark.parametrize(("emulate", "code"), [(4, 0), (5, 1)])
async def test_reply_without_a_body_is_for_4_9_an_empty_one(
    broker_maker: MakeBroker, emulate: int, code: int
) -> None:
    broker = broker_maker(emulate=emulate)
    connection = asker(broker, Command(0))
    assert (await reply(broker, PROPERTIES, body=b"")).code == code
    assert len(connection.questions) == (1 if emulate == 4 else 0)


async def test_wrong_queue_is_refused_before_anything_is_pushed(broker: Broker) -> None:
    connection = asker(broker, Command(0))
    got = await reply(broker, PROPERTIES, queue_id=9)
    assert got.code == 29
    assert got.fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    assert connection.questions == []
