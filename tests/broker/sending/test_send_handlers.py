"""Sends: places and keys that the broker makes, waiting for the disk, and limits of our own.

What is stored, and what the topics become, is in the recorded conversation `stored`; refusals are in `refused` and
`sizes`.
"""

from datetime import datetime

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.sending.send_checks import MAX_SENT_PROPERTIES
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.properties import decode_properties, encode_properties_text
from pocketmq.protocol.requests.send import SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.store import VirtualClock

from broker_fakes import FakeConnection, MakeBroker, ask, record_at, send_request


def properties(**pairs: str) -> str:
    return encode_properties_text(pairs)


async def test_a_text_of_properties_that_is_split_for_long_is_refused(broker: Broker) -> None:
    """What is left of equal names would be short enough to be stored."""
    pair = properties(k="v")
    short, long = pair * (MAX_SENT_PROPERTIES // 4), pair * (MAX_SENT_PROPERTIES // 4 + 1)
    for kind in (SendMessage, SendMessageV2):
        assert (await ask(broker, send_request(kind=kind, properties=short), b"body")).code == 0
        answer = await ask(broker, send_request(kind=kind, properties=long), b"body")
        assert (answer.code, "properties length limit" in answer.remark) == (13, True)
    assert decode_properties(record_at(broker, offset=1).properties)["k"] == "v"
    assert broker.store.queue_unit("orders", 0, 2) is None


async def test_the_answer_names_the_place_and_the_record_its_hosts(broker: Broker) -> None:
    request, connection = (
        send_request(queue_id=2, properties=properties(UNIQ_KEY="U")),
        FakeConnection(50_001),
    )
    answer = await ask(broker, request, b"body", connection=connection)
    record = record_at(broker, queue_id=2)
    assert (record.born_host, record.store_host) == (connection.packed_host, broker.identity.store_host)
    # 127.0.0.1, port 10911 and log position 0 as hexadecimal digits
    assert answer.fields["msgId"] == "7F00000100002A9F0000000000000000"


async def test_line_5_adds_a_unique_key(broker: Broker) -> None:
    answer = await ask(broker, send_request(), b"body")
    seen = decode_properties(record_at(broker).properties)
    assert seen["UNIQ_KEY"] == answer.fields["transactionId"]


async def test_sends_before_the_opening_time_are_refused(
    broker_maker: MakeBroker, clock: VirtualClock
) -> None:
    opening = clock.now_ms() + 90_123
    broker = broker_maker(start_accept_send_request_time_stamp=opening)
    answer = await ask(broker, send_request(), b"x")
    assert answer.code == 1
    until = datetime.fromtimestamp(opening // 1000).strftime("%Y-%m-%d %H:%M:%S") + f":{opening % 1000:03}"
    assert answer.remark == f"broker unable to service, until {until}"
    for ms in (90_123, 1):
        clock.advance(ms)
        assert (await ask(broker, send_request(), b"x")).code == 0


@pytest.mark.parametrize(("count", "code"), [(1000, 0), (1001, 13)])
async def test_messages_whose_properties_are_not_utf_8_are_limited(
    broker: Broker, count: int, code: int
) -> None:
    body = encode_batch([BatchElement(0, b"x", b"TAGS\x01\xff\x02")] * count)
    assert (await ask(broker, send_request(kind=SendBatchMessage, batch=True), body)).code == code
    assert broker.store.max_offset("orders", 0) == (0 if code else count)


async def test_a_message_that_does_not_wait_is_answered_at_once(syncing: Broker) -> None:
    assert (await ask(syncing, send_request(properties=properties(WAIT="false")), b"x")).code == 0


@pytest.mark.parametrize("queues", [1, 3])
async def test_broker_chooses_among_all_queues_that_are_written(broker: Broker, queues: int) -> None:
    broker.topics.update(TopicConfig(topic_name="t", read_queue_nums=8, write_queue_nums=queues))
    chosen = {(await ask(broker, send_request("t", queue_id=-1), b"x")).fields["queueId"] for _ in range(60)}
    assert chosen == {str(queue_id) for queue_id in range(queues)}


@pytest.mark.parametrize("digits", [11, 20, 5000])
async def test_delay_level_that_no_int_holds_is_refused_in_words(broker: Broker, digits: int) -> None:
    answer = await ask(broker, send_request(properties=properties(DELAY="9" * digits)), b"x")
    assert answer.code == 1
    assert "DELAY is not a number" in (answer.remark or "")
    assert broker.store.log_end <= 0


async def test_priority_that_no_int_holds_is_none(broker: Broker) -> None:
    answer = await ask(broker, send_request(properties=properties(_SYS_MSG_PRIORITY_="9" * 5000)), b"x")
    assert (answer.code, answer.fields["queueId"]) == (0, "0")
