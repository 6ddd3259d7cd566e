"""Sends: the official order of checks, the official codes and remarks, and the stored messages."""

import asyncio
from datetime import datetime
from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.network.dispatch import HELD
from pocketmq.broker.sending.send_checks import MAX_SENT_PROPERTIES
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.properties import decode_properties, encode_properties_text
from pocketmq.protocol.message.record import Record, decode_record
from pocketmq.protocol.requests.send import SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.store import VirtualClock

from broker_fakes import FakeConnection, MakeBroker, ask, send


def a_send(topic: str = "orders", kind: Any = SendMessageV2, **changes: Any) -> Any:
    fields: dict[str, Any] = {
        "producer_group": "pg",
        "topic": topic,
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp": 1_700_000_000_000,
        "flag": 0,
    }
    return kind(**{**fields, **changes})


def properties(**pairs: str) -> str:
    return encode_properties_text(pairs)


def stored(broker: Broker, topic: str = "orders", queue_id: int = 0, offset: int = 0) -> Record:
    entry = broker.store.queue_unit(topic, queue_id, offset)
    assert entry is not None, f"nothing at {topic} {queue_id} {offset}"
    record = broker.store.read_record(entry[0], entry[1])
    assert record is not None
    return decode_record(record)


@pytest.mark.parametrize(("filter_type", "flag"), [("SINGLE_TAG", 0), ("MULTI_TAG", 2)])
async def test_a_topic_of_several_tags_marks_its_messages(
    broker: Broker, broker4: Broker, filter_type: str, flag: int
) -> None:
    batch = encode_batch([BatchElement(0, b"b", b""), BatchElement(0, b"c", b"odd")])
    for one in (broker, broker4):
        one.topics.update(TopicConfig(topic_name="orders", topic_filter_type=filter_type))
        for sent in (1, 1, 3):  # the first message of a queue, and further ones
            assert (await ask(one, a_send(sys_flag=sent), b"a")).code == 0
            request = a_send(kind=SendBatchMessage, batch=True, sys_flag=sent)
            assert (await ask(one, request, batch)).code == 0
        seen = [stored(one, offset=offset).sys_flag for offset in range(9)]
        assert seen == [1 | flag] * 6 + [3] * 3


async def test_numbers_and_hosts_are_stored_as_sent(broker: Broker, broker4: Broker) -> None:
    batch, connection = encode_batch([BatchElement(7, b"b", b"")]), FakeConnection(50_001)
    for one in (broker, broker4):
        for times in (None, 3):
            sent: dict[str, Any] = {"flag": 7, "born_timestamp": 5, "sys_flag": 1, "reconsume_times": times}
            assert (await ask(one, a_send(**sent), b"a", connection=connection)).code == 0
            request = a_send(kind=SendBatchMessage, batch=True, **sent)
            assert (await ask(one, request, batch, connection=connection)).code == 0
        for offset in range(4):
            record = stored(one, offset=offset)
            assert (record.flag, record.born_timestamp, record.sys_flag) == (7, 5, 1)
            assert (record.born_host, record.store_host) == (connection.packed_host, one.identity.store_host)
            assert record.reconsume_times == (3 if offset > 1 else 0)


async def test_both_spellings_store_the_same_message(broker: Broker) -> None:
    for kind in (SendMessage, SendMessageV2):
        answer = await ask(broker, a_send(kind=kind, properties=properties(UNIQ_KEY="U", TAGS="A")), b"body")
        assert answer.code == 0
    first, second = stored(broker, offset=0), stored(broker, offset=1)
    assert bytes(first.body) == bytes(second.body) == b"body"
    assert bytes(first.properties) == bytes(second.properties)


async def test_a_text_of_properties_that_is_split_for_long_is_refused(broker: Broker) -> None:
    """What is left of equal names would be short enough to be stored."""
    pair = properties(k="v")
    short, long = pair * (MAX_SENT_PROPERTIES // 4), pair * (MAX_SENT_PROPERTIES // 4 + 1)
    for kind in (SendMessage, SendMessageV2):
        assert (await ask(broker, a_send(kind=kind, properties=short), b"body")).code == 0
        answer = await ask(broker, a_send(kind=kind, properties=long), b"body")
        assert (answer.code, "properties length limit" in answer.remark) == (13, True)
    assert decode_properties(stored(broker, offset=1).properties)["k"] == "v"
    assert broker.store.queue_unit("orders", 0, 2) is None


async def test_the_answer_names_the_place(broker: Broker) -> None:
    answer = await ask(broker, a_send(queue_id=2, properties=properties(UNIQ_KEY="U")), b"body")
    # 127.0.0.1, port 10911 and log position 0 as hexadecimal digits
    assert answer.fields["msgId"] == "7F00000100002A9F0000000000000000"
    assert answer.fields["queueId"] == "2"
    assert answer.fields["queueOffset"] == "0"
    assert answer.fields["transactionId"] == "U"
    assert answer.fields["MSG_REGION"] == "DefaultRegion"
    assert answer.fields["TRACE_ON"] == "true"


async def test_line_5_adds_properties_and_a_unique_key(broker: Broker) -> None:
    answer = await ask(broker, a_send(), b"body")
    seen = decode_properties(stored(broker).properties)
    assert seen == {
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
        "CLUSTER": "DefaultCluster",
        "UNIQ_KEY": answer.fields["transactionId"],
    }


async def test_line_4_adds_only_its_cluster_and_drops_wait(broker4: Broker) -> None:
    await ask(broker4, a_send(properties=properties(TAGS="A", WAIT="true")), b"body")
    record = stored(broker4)
    assert decode_properties(record.properties) == {"TAGS": "A", "CLUSTER": "DefaultCluster"}
    assert not bytes(record.properties).endswith(b"\x02")


async def test_a_new_topic_has_the_smaller_number_of_queues(broker: Broker) -> None:
    await ask(broker, a_send("young", default_topic_queue_nums=3), b"x")
    config = broker.topics.find("young")
    assert config is not None
    assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (3, 3, 6)


async def test_minus_one_picks_a_queue(broker: Broker) -> None:
    answer = await ask(broker, a_send(queue_id=-1), b"x")
    assert 0 <= int(answer.fields["queueId"]) < 4


@pytest.mark.parametrize(
    ("changes", "code5", "code4", "words"),
    [
        ({"topic": "bad topic"}, 29, 1, "contains illegal characters"),
        ({"topic": "x" * 128}, 29, 1, "longer than topic max length"),
        (
            {"topic": "SCHEDULE_TOPIC_XXXX"},
            16,
            16,
            "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden.",
        ),
        ({"topic": "none", "default_topic": "none"}, 17, 17, "topic[none] not exist, apply first please!"),
        ({"queue_id": 99}, 29, 1, "request queueId[99] is illegal, TopicConfig [topicName=orders"),
    ],
)
async def test_refusals_have_the_official_code_and_words(
    broker: Broker, broker4: Broker, changes: dict[str, Any], code5: int, code4: int, words: str
) -> None:
    for one, code in ((broker, code5), (broker4, code4)):
        answer = await ask(one, a_send(**changes), b"x")
        assert answer.code == code
        assert words in (answer.remark or "")


async def test_auto_creation_can_be_forbidden(broker_maker: MakeBroker) -> None:
    broker = broker_maker(auto_create_topic_enable=False)
    assert (await ask(broker, a_send("young"), b"x")).code == 17


async def test_a_body_over_the_limit_is_illegal(broker_maker: MakeBroker) -> None:
    broker = broker_maker(store={"max_message_size": 100})
    answer = await ask(broker, a_send(), b"x" * 101)
    assert answer.code == 13
    assert "msg body length limit 100B" in (answer.remark or "")
    assert (await ask(broker, a_send(), b"x" * 100)).code == 0


async def test_an_empty_body_is_refused_by_line_5_only(broker: Broker, broker4: Broker) -> None:
    assert (await ask(broker, a_send())).code == 1
    assert (await ask(broker4, a_send())).code == 0


@pytest.mark.parametrize("changes", [{"sys_flag": 0x80}, {"properties": "INNER_NUM\x012\x02"}])
async def test_a_batch_to_be_stored_as_one_is_illegal_in_line_5_only(
    broker: Broker, broker4: Broker, changes: dict[str, Any]
) -> None:
    assert (await ask(broker, a_send(**changes), b"x")).code == 13
    assert (await ask(broker4, a_send(**changes), b"x")).code == 0


async def test_an_order_topic_is_closed_with_the_broker(broker_maker: MakeBroker) -> None:
    broker = broker_maker(broker_permission=4)
    broker.topics.update(TopicConfig(topic_name="ordered", order=True))
    assert (await ask(broker, a_send("ordered"), b"x")).code == 16
    assert (await ask(broker, a_send("orders"), b"x")).code == 0


async def test_sends_before_the_opening_time_are_refused(
    broker_maker: MakeBroker, clock: VirtualClock
) -> None:
    opening = clock.now_ms() + 90_123
    broker = broker_maker(start_accept_send_request_time_stamp=opening)
    answer = await ask(broker, a_send(), b"x")
    assert answer.code == 1
    until = datetime.fromtimestamp(opening // 1000).strftime("%Y-%m-%d %H:%M:%S") + f":{opening % 1000:03}"
    assert answer.remark == f"broker unable to service, until {until}"
    for ms in (90_123, 1):
        clock.advance(ms)
        assert (await ask(broker, a_send(), b"x")).code == 0


async def test_transactions_and_timed_messages_may_be_refused(broker: Broker) -> None:
    broker.config.reject_transaction_message = True
    broker.config.store.timer_wheel_enable = False
    for name, value, code in (
        ("TRAN_MSG", "true", 16),
        ("TIMER_DELAY_SEC", "60", 1),
        ("TIMER_DELIVER_MS", "1", 1),
    ):
        assert (await ask(broker, a_send(properties=properties(**{name: value})), b"x")).code == code
    assert broker.store.log_end <= 0


async def test_a_priority_chooses_the_queue(broker: Broker) -> None:
    await ask(broker, a_send(), b"x")  # makes four queues
    for priority, queue_id in (("2", "2"), ("9", "3")):
        answer = await ask(broker, a_send(properties=properties(_SYS_MSG_PRIORITY_=priority)), b"x")
        assert answer.fields["queueId"] == queue_id
    answer = await ask(broker, a_send(properties=properties(_SYS_MSG_PRIORITY_="2", __SHARDINGKEY="k")), b"x")
    assert answer.fields["queueId"] == "0"


async def test_a_delayed_message_waits_in_the_schedule_topic(broker: Broker) -> None:
    answer = await ask(broker, a_send(queue_id=1, properties=properties(DELAY="3")), b"later")
    assert answer.fields["queueId"] == "1"
    assert broker.store.max_offset("orders", 1) == 0
    record = stored(broker, "SCHEDULE_TOPIC_XXXX", 2)
    seen = decode_properties(record.properties)
    assert (seen["REAL_TOPIC"], seen["REAL_QID"], seen["DELAY"]) == ("orders", "1", "3")


class TestBatch:
    """320: several messages of one queue, all or none."""

    elements = (
        BatchElement(0, b"one", properties(TAGS="A", UNIQ_KEY="1").encode()),
        BatchElement(7, b"two", properties(TAGS="B", UNIQ_KEY="2").encode()),
    )

    async def test_elements_get_consecutive_offsets(self, broker: Broker) -> None:
        request = a_send(kind=SendBatchMessage, batch=True)
        answer = await ask(broker, request, encode_batch(self.elements))
        assert answer.code == 0
        assert answer.fields["queueOffset"] == "0"
        assert len(answer.fields["msgId"].split(",")) == 2
        assert [bytes(stored(broker, offset=n).body) for n in (0, 1)] == [b"one", b"two"]
        assert stored(broker, offset=1).flag == 7

    async def test_line_5_stores_properties_as_sent_and_line_4_adds_those_of_the_batch(
        self, broker: Broker, broker4: Broker
    ) -> None:
        request = a_send(kind=SendBatchMessage, batch=True, properties=properties(WAIT="true"))
        for one in (broker, broker4):
            await ask(one, request, encode_batch(self.elements))
        assert decode_properties(stored(broker).properties) == {"TAGS": "A", "UNIQ_KEY": "1"}
        assert decode_properties(stored(broker4).properties) == {
            "TAGS": "A",
            "UNIQ_KEY": "1",
            "WAIT": "true",
            "CLUSTER": "DefaultCluster",
        }

    async def test_line_4_separates_its_properties_from_those_of_each_message(self, broker4: Broker) -> None:
        texts = (b"TAGS\x01A", b"", b"KEYS\x01k\x02", b"UNIQ_KEY\x01%b" % (b"7" * 32), b"")
        added, request = b"CLUSTER\x01DefaultCluster", a_send(kind=SendBatchMessage, batch=True)
        for count in (4, 1, 1, 4):  # mixed, alike
            body = encode_batch([BatchElement(0, b"x", text) for text in texts[-count - 1 : -1]])
            assert (await ask(broker4, request, body)).code == 0
        seen = [bytes(stored(broker4, offset=offset).properties) for offset in range(10)]
        mixed = [b"TAGS\x01A\x02" + added, added, b"KEYS\x01k\x02" + added, texts[3] + b"\x02" + added]
        assert seen == [*mixed, mixed[3], mixed[3], *mixed]

    async def test_code_310_with_the_batch_flag_is_a_batch(self, broker: Broker) -> None:
        await ask(broker, a_send(batch=True), encode_batch(self.elements))
        assert broker.store.max_offset("orders", 0) == 2

    @pytest.mark.parametrize(
        "changes", [{"sys_flag": 4}, {"properties": properties(DELAY="1")}, {"topic": "%RETRY%g"}]
    )
    async def test_what_cannot_be_batched_is_illegal(self, broker: Broker, changes: dict[str, Any]) -> None:
        broker.groups.find_or_create("g")
        answer = await ask(
            broker, a_send(kind=SendBatchMessage, batch=True, **changes), encode_batch(self.elements)
        )
        assert answer.code == 13
        assert broker.store.log_end <= 0

    @pytest.mark.parametrize(("count", "code"), [(1000, 0), (1001, 13)])
    async def test_messages_whose_properties_are_not_utf_8_are_limited(
        self, broker: Broker, count: int, code: int
    ) -> None:
        body = encode_batch([BatchElement(0, b"x", b"TAGS\x01\xff\x02")] * count)
        assert (await ask(broker, a_send(kind=SendBatchMessage, batch=True), body)).code == code
        assert broker.store.max_offset("orders", 0) == (0 if code else count)

    async def test_a_lying_length_stores_nothing(self, broker: Broker) -> None:
        body = encode_batch(self.elements)[:-3]
        assert (await ask(broker, a_send(kind=SendBatchMessage, batch=True), body)).code == 1
        assert broker.store.log_end <= 0


class TestSyncFlush:
    """SYNC_FLUSH: the answer is sent once the message is on disk."""

    @pytest.fixture
    async def syncing(self, broker_maker: MakeBroker) -> Broker:
        return broker_maker(store={"flush_disk_type": "SYNC_FLUSH", "sync_flush_timeout": 30})

    async def test_the_answer_waits_for_the_disk(self, syncing: Broker) -> None:
        connection = FakeConnection()
        assert await send(syncing, a_send(), b"x", connection=connection) is HELD
        assert connection.late_answers == []
        syncing.store.flush_pass()
        await _turns()
        assert [answer.code for answer in connection.late_answers] == [0]  # type: ignore[union-attr]

    async def test_a_slow_disk_is_answered_once(self, syncing: Broker) -> None:
        connection = FakeConnection()
        await send(syncing, a_send(), b"x", connection=connection)
        await asyncio.sleep(0.05)  # syncFlushTimeout is 30 ms of the event loop's own time
        syncing.store.flush_pass()
        await _turns()
        assert [answer.code for answer in connection.late_answers] == [10]  # type: ignore[union-attr]

    async def test_a_message_that_does_not_wait_is_answered_at_once(self, syncing: Broker) -> None:
        assert (await ask(syncing, a_send(properties=properties(WAIT="false")), b"x")).code == 0

    async def test_only_so_many_wait_for_the_disk(self, broker_maker: MakeBroker) -> None:
        broker = broker_maker(
            store={"flush_disk_type": "SYNC_FLUSH", "sync_flush_timeout": 30_000},
            send_thread_pool_queue_capacity=2,
        )
        connection = FakeConnection()
        for _ in range(2):
            assert await send(broker, a_send(), b"x", connection=connection) is HELD
        refused = await ask(broker, a_send(), b"x")
        assert (refused.code, refused.remark) == (2, "[OVERLOAD]system busy, start flow control for a while")
        assert broker.sending.waiting_sends == 2
        broker.store.flush_pass()
        await _turns()
        assert len(connection.late_answers) == 2
        assert broker.sending.waiting_sends == 0
        assert await send(broker, a_send(), b"x", connection=connection) is HELD


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)
