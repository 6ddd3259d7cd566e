"""Sends: the stored messages, the topics they create, the queues they get, and what reroutes them.

The official codes and remarks of refusals are in the recorded conversations `refused` and `sizes`.
"""

from datetime import datetime
from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.network.dispatch import HELD
from pocketmq.broker.sending.send_checks import MAX_SENT_PROPERTIES
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.properties import decode_properties, encode_properties_text
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC
from pocketmq.protocol.requests.send import SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.store import VirtualClock

from broker_fakes import Asked, FakeConnection, MakeBroker, ask, record_at, records, send, send_request, turns


def properties(**pairs: str) -> str:
    return encode_properties_text(pairs)


@pytest.mark.parametrize(("filter_type", "flag"), [("SINGLE_TAG", 0), ("MULTI_TAG", 2)])
async def test_a_topic_of_several_tags_marks_its_messages(
    broker: Broker, broker4: Broker, filter_type: str, flag: int
) -> None:
    batch = encode_batch([BatchElement(0, b"b", b""), BatchElement(0, b"c", b"odd")])
    for one in (broker, broker4):
        one.topics.update(TopicConfig(topic_name="orders", topic_filter_type=filter_type))
        for sent in (1, 1, 3):  # the first message of a queue, and further ones
            assert (await ask(one, send_request(sys_flag=sent), b"a")).code == 0
            request = send_request(kind=SendBatchMessage, batch=True, sys_flag=sent)
            assert (await ask(one, request, batch)).code == 0
        seen = [record_at(one, offset=offset).sys_flag for offset in range(9)]
        assert seen == [1 | flag] * 6 + [3] * 3


async def test_numbers_and_hosts_are_stored_as_sent(broker: Broker, broker4: Broker) -> None:
    batch, connection = encode_batch([BatchElement(7, b"b", b"")]), FakeConnection(50_001)
    for one in (broker, broker4):
        for times in (None, 3):
            sent: dict[str, Any] = {"flag": 7, "born_timestamp": 5, "sys_flag": 1, "reconsume_times": times}
            assert (await ask(one, send_request(**sent), b"a", connection=connection)).code == 0
            request = send_request(kind=SendBatchMessage, batch=True, **sent)
            assert (await ask(one, request, batch, connection=connection)).code == 0
        for offset in range(4):
            record = record_at(one, offset=offset)
            assert (record.flag, record.born_timestamp, record.sys_flag) == (7, 5, 1)
            assert (record.born_host, record.store_host) == (connection.packed_host, one.identity.store_host)
            assert record.reconsume_times == (3 if offset > 1 else 0)


async def test_both_spellings_store_the_same_message(broker: Broker) -> None:
    for kind in (SendMessage, SendMessageV2):
        answer = await ask(
            broker, send_request(kind=kind, properties=properties(UNIQ_KEY="U", TAGS="A")), b"body"
        )
        assert answer.code == 0
    first, second = record_at(broker, offset=0), record_at(broker, offset=1)
    assert bytes(first.body) == bytes(second.body) == b"body"
    assert bytes(first.properties) == bytes(second.properties)


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


async def test_the_answer_names_the_place(broker: Broker) -> None:
    answer = await ask(broker, send_request(queue_id=2, properties=properties(UNIQ_KEY="U")), b"body")
    # 127.0.0.1, port 10911 and log position 0 as hexadecimal digits
    assert answer.fields["msgId"] == "7F00000100002A9F0000000000000000"
    assert answer.fields["queueId"] == "2"
    assert answer.fields["queueOffset"] == "0"
    assert answer.fields["transactionId"] == "U"
    assert answer.fields["MSG_REGION"] == "DefaultRegion"
    assert answer.fields["TRACE_ON"] == "true"


async def test_line_5_adds_properties_and_a_unique_key(broker: Broker) -> None:
    answer = await ask(broker, send_request(), b"body")
    seen = decode_properties(record_at(broker).properties)
    assert seen == {
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
        "CLUSTER": "DefaultCluster",
        "UNIQ_KEY": answer.fields["transactionId"],
    }


async def test_line_4_adds_only_its_cluster_and_drops_wait(broker4: Broker) -> None:
    await ask(broker4, send_request(properties=properties(TAGS="A", WAIT="true")), b"body")
    record = record_at(broker4)
    assert decode_properties(record.properties) == {"TAGS": "A", "CLUSTER": "DefaultCluster"}
    assert not bytes(record.properties).endswith(b"\x02")


async def test_a_new_topic_has_the_smaller_number_of_queues(broker: Broker) -> None:
    await ask(broker, send_request("young", default_topic_queue_nums=3), b"x")
    config = broker.topics.find("young")
    assert config is not None
    assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (3, 3, 6)


async def test_an_empty_body_is_refused_by_line_5_only(broker: Broker, broker4: Broker) -> None:
    assert (await ask(broker, send_request())).code == 1
    assert (await ask(broker4, send_request())).code == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"sys_flag": 0x80},
        {"sys_flag": 0x80, "properties": "TIMER_DELAY_SEC\x01x\x02"},
        {"properties": "INNER_NUM\x012\x02"},
    ],
)
async def test_a_batch_to_be_stored_as_one_is_illegal_in_line_5_only(
    broker: Broker, broker4: Broker, changes: dict[str, Any]
) -> None:
    answer = await ask(broker, send_request(**changes), b"x")
    assert (answer.code, (answer.remark or "")[:24]) == (13, "the message is illegal, ")
    assert (await ask(broker4, send_request(**changes), b"x")).code == 0


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


async def test_a_priority_chooses_the_queue(broker: Broker) -> None:
    await ask(broker, send_request(), b"x")  # makes four queues
    for priority, queue_id in (("2", "2"), ("9", "3")):
        answer = await ask(broker, send_request(properties=properties(_SYS_MSG_PRIORITY_=priority)), b"x")
        assert answer.fields["queueId"] == queue_id
    answer = await ask(
        broker, send_request(properties=properties(_SYS_MSG_PRIORITY_="2", __SHARDINGKEY="k")), b"x"
    )
    assert answer.fields["queueId"] == "0"


class TestBatch:
    """320: several messages of one queue, all or none."""

    elements = (
        BatchElement(0, b"one", properties(TAGS="A", UNIQ_KEY="1").encode()),
        BatchElement(7, b"two", properties(TAGS="B", UNIQ_KEY="2").encode()),
    )

    async def test_elements_get_consecutive_offsets(self, broker: Broker) -> None:
        request = send_request(kind=SendBatchMessage, batch=True)
        answer = await ask(broker, request, encode_batch(self.elements))
        assert answer.code == 0
        assert answer.fields["queueOffset"] == "0"
        assert len(answer.fields["msgId"].split(",")) == 2
        assert [bytes(record_at(broker, offset=n).body) for n in (0, 1)] == [b"one", b"two"]
        assert record_at(broker, offset=1).flag == 7

    async def test_line_5_stores_properties_as_sent_and_line_4_adds_those_of_the_batch(
        self, broker: Broker, broker4: Broker
    ) -> None:
        request = send_request(kind=SendBatchMessage, batch=True, properties=properties(WAIT="true"))
        for one in (broker, broker4):
            await ask(one, request, encode_batch(self.elements))
        assert decode_properties(record_at(broker).properties) == {"TAGS": "A", "UNIQ_KEY": "1"}
        assert decode_properties(record_at(broker4).properties) == {
            "TAGS": "A",
            "UNIQ_KEY": "1",
            "WAIT": "true",
            "CLUSTER": "DefaultCluster",
        }

    async def test_line_4_separates_its_properties_from_those_of_each_message(self, broker4: Broker) -> None:
        texts = (b"TAGS\x01A", b"", b"KEYS\x01k\x02", b"UNIQ_KEY\x01%b" % (b"7" * 32), b"")
        added, request = b"CLUSTER\x01DefaultCluster", send_request(kind=SendBatchMessage, batch=True)
        for count in (4, 1, 1, 4):  # mixed, alike
            body = encode_batch([BatchElement(0, b"x", text) for text in texts[-count - 1 : -1]])
            assert (await ask(broker4, request, body)).code == 0
        seen = [bytes(record_at(broker4, offset=offset).properties) for offset in range(10)]
        mixed = [b"TAGS\x01A\x02" + added, added, b"KEYS\x01k\x02" + added, texts[3] + b"\x02" + added]
        assert seen == [*mixed, mixed[3], mixed[3], *mixed]

    async def test_code_310_with_the_batch_flag_is_a_batch(self, broker: Broker) -> None:
        await ask(broker, send_request(batch=True), encode_batch(self.elements))
        assert broker.store.max_offset("orders", 0) == 2

    @pytest.mark.parametrize(
        "changes", [{"sys_flag": 4}, {"properties": properties(DELAY="1")}, {"topic": "%RETRY%g"}]
    )
    async def test_what_cannot_be_batched_is_illegal(self, broker: Broker, changes: dict[str, Any]) -> None:
        broker.groups.find_or_create("g")
        answer = await ask(
            broker, send_request(kind=SendBatchMessage, batch=True, **changes), encode_batch(self.elements)
        )
        assert answer.code == 13
        assert broker.store.log_end <= 0

    @pytest.mark.parametrize(("count", "code"), [(1000, 0), (1001, 13)])
    async def test_messages_whose_properties_are_not_utf_8_are_limited(
        self, broker: Broker, count: int, code: int
    ) -> None:
        body = encode_batch([BatchElement(0, b"x", b"TAGS\x01\xff\x02")] * count)
        assert (await ask(broker, send_request(kind=SendBatchMessage, batch=True), body)).code == code
        assert broker.store.max_offset("orders", 0) == (0 if code else count)


class TestSyncFlush:
    """SYNC_FLUSH: the answer is sent once the message is on disk."""

    @pytest.fixture
    async def syncing(self, broker_maker: MakeBroker) -> Broker:
        return broker_maker(store={"flush_disk_type": "SYNC_FLUSH", "sync_flush_timeout": 30})

    async def test_a_message_that_does_not_wait_is_answered_at_once(self, syncing: Broker) -> None:
        assert (await ask(syncing, send_request(properties=properties(WAIT="false")), b"x")).code == 0

    async def test_only_so_many_wait_for_the_disk(self, broker_maker: MakeBroker) -> None:
        broker = broker_maker(
            store={"flush_disk_type": "SYNC_FLUSH", "sync_flush_timeout": 30_000},
            send_thread_pool_queue_capacity=2,
        )
        connection = FakeConnection()
        for _ in range(2):
            assert await send(broker, send_request(), b"x", connection=connection) is HELD
        refused = await ask(broker, send_request(), b"x")
        assert (refused.code, refused.remark) == (2, "[OVERLOAD]system busy, start flow control for a while")
        assert broker.sending.waiting_sends == 2
        broker.store.flush_pass()
        await turns()
        assert len(connection.late_answers) == 2
        assert broker.sending.waiting_sends == 0
        assert await send(broker, send_request(), b"x", connection=connection) is HELD


# -- the topic of a send, and its queue


async def ask_to_send(broker: Broker, topic: str, **changes: Any) -> Asked:
    return await ask(broker, send_request(topic, **changes), b"x", connection=FakeConnection(50_001))


def created(broker: Broker, topic: str) -> tuple[int, int, int, int]:
    """Readable and writable queues, permissions, and flags of a topic."""
    config = broker.topics.find(topic)
    assert config is not None
    return config.read_queue_nums, config.write_queue_nums, config.perm, config.topic_sys_flag


@pytest.mark.parametrize(("unit_mode", "flag"), [(False, 0), (True, 2)])
async def test_retry_topic_that_the_template_does_not_make_has_one_queue(
    broker_maker: MakeBroker, unit_mode: bool, flag: int
) -> None:
    broker = broker_maker(auto_create_topic_enable=False)
    assert (await ask_to_send(broker, "%RETRY%g", unit_mode=unit_mode)).code == 0
    assert created(broker, "%RETRY%g") == (1, 1, 6, flag)
    assert (await ask_to_send(broker, "other", unit_mode=unit_mode)).code == 17


async def test_retry_topic_that_the_template_makes_is_like_others(broker: Broker) -> None:
    assert (await ask_to_send(broker, "%RETRY%g")).code == 0
    assert created(broker, "%RETRY%g") == (4, 4, 6, 0)


@pytest.mark.parametrize(
    ("topic", "unit_mode", "flag"), [("t", True, 1), ("%RETRY%g", True, 2), ("t", False, 0)]
)
async def test_topic_made_in_unit_mode_has_its_flag(
    broker: Broker, topic: str, unit_mode: bool, flag: int
) -> None:
    assert (await ask_to_send(broker, topic, unit_mode=unit_mode)).code == 0
    assert created(broker, topic)[3] == flag


@pytest.mark.parametrize("order", [False, True])
async def test_wrong_queue_is_answered_with_the_whole_topic(
    broker: Broker, broker4: Broker, order: bool
) -> None:
    config = TopicConfig(topic_name="made", read_queue_nums=2, write_queue_nums=3, perm=4, order=order)
    config.attributes["+message.type"] = "FIFO"
    for one, attributes in ((broker, ", attributes={message.type=FIFO}"), (broker4, "")):
        one.topics.update(config)
        assert (await ask_to_send(one, "made", queue_id=2)).code == 0, "it is written to, though not read"
        text = (
            "TopicConfig [topicName=made, readQueueNums=2, writeQueueNums=3, perm=R--, topicFilterType=SINGLE_TAG, "
            f"topicSysFlag=0, order={'true' if order else 'false'}{attributes}]"
        )
        remark = (await ask_to_send(one, "made", queue_id=3)).remark
        assert remark == f"request queueId[3] is illegal, {text} Producer: 127.0.0.1:50001"


@pytest.mark.parametrize(("permission", "code"), [(6, 0), (2, 0), (4, 16), (0, 16)])
async def test_order_topic_is_closed_only_where_the_broker_is_not_writable(
    broker_maker: MakeBroker, permission: int, code: int
) -> None:
    broker = broker_maker(broker_permission=permission)
    broker.topics.update(TopicConfig(topic_name="ordered", order=True))
    broker.topics.update(TopicConfig(topic_name="plain"))
    answer = await ask_to_send(broker, "ordered")
    assert answer.code == code
    assert code == 0 or answer.remark == "the broker[127.0.0.1] sending message is forbidden"
    assert (await ask_to_send(broker, "plain")).code == 0
    assert (await ask_to_send(broker, "bad topic")).code == 29, "its name is checked next"


@pytest.mark.parametrize("queues", [1, 3])
async def test_broker_chooses_among_all_queues_that_are_written(broker: Broker, queues: int) -> None:
    broker.topics.update(TopicConfig(topic_name="t", read_queue_nums=8, write_queue_nums=queues))
    chosen = {(await ask_to_send(broker, "t", queue_id=-1)).fields["queueId"] for _ in range(60)}
    assert chosen == {str(queue_id) for queue_id in range(queues)}


# -- properties that reroute a send


async def test_consumer_may_give_back_what_was_a_half_message(broker: Broker) -> None:
    """It counts as one only without reconsumeTimes and DELAY (SendMessageProcessor)."""
    broker.config.reject_transaction_message = True
    assert (await ask(broker, send_request(properties=properties(TRAN_MSG="true")), b"x")).code == 16
    assert (
        await ask(broker, send_request(properties=properties(TRAN_MSG="true", DELAY="3")), b"x")
    ).code == 16
    given_back = properties(TRAN_MSG="true", DELAY="3")
    request = send_request("%RETRY%g", reconsume_times=1, properties=given_back)
    assert (await ask(broker, request, b"x")).code == 0
    (waiting,) = records(broker, SCHEDULE_TOPIC, 2)
    assert decode_properties(waiting.properties)["REAL_TOPIC"] == "%RETRY%g"


@pytest.mark.parametrize("digits", [11, 20, 5000])
async def test_delay_level_that_no_int_holds_is_refused_in_words(broker: Broker, digits: int) -> None:
    answer = await ask(broker, send_request(properties=properties(DELAY="9" * digits)), b"x")
    assert answer.code == 1
    assert "DELAY is not a number" in (answer.remark or "")
    assert broker.store.log_end <= 0


async def test_priority_that_no_int_holds_is_none(broker: Broker) -> None:
    answer = await ask(broker, send_request(properties=properties(_SYS_MSG_PRIORITY_="9" * 5000)), b"x")
    assert (answer.code, answer.fields["queueId"]) == (0, "0")
