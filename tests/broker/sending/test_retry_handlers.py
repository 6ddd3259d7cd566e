"""36: what no other broker shows. Copies, dead letters and refusals are in the recorded conversation `stored`."""

import msgspec
import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.sending.retry_handlers import redirect_if_exhausted
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.languages import V3_4_9
from pocketmq.protocol.message.offset_id import decode_message_id
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC
from pocketmq.protocol.requests.send import ConsumerSendMsgBack
from pocketmq.store import VirtualClock

from broker_fakes import (
    Asked,
    MakeBroker,
    after_the_flush,
    ask,
    record_at,
    send_request,
    store_message,
    turns,
)


def put(broker: Broker) -> tuple[int, str]:
    """A message in T2; its log position and its message id."""
    message_id = store_message(broker, "T2")
    return decode_message_id(message_id).position, message_id


async def send_back(broker: Broker, offset: int, delay_level: int = 0, **fields: object) -> Asked:
    version = fields.pop("version", 513)
    assert isinstance(version, int)
    request = ConsumerSendMsgBack(offset=offset, group="GG", delay_level=delay_level)
    return await ask(broker, msgspec.structs.replace(request, **fields), version=version)


def newest(broker: Broker, topic: str, queue_id: int = 0) -> Record:
    return record_at(broker, topic, queue_id, -1)


async def test_the_copy_names_its_origin_and_its_time_is_its_own(broker: Broker, clock: VirtualClock) -> None:
    offset, message_id = put(broker)
    origin = newest(broker, "T2")
    clock.advance(5000)
    await send_back(broker, offset)
    copy = newest(broker, SCHEDULE_TOPIC, 2)
    assert decode_properties(copy.properties)["ORIGIN_MESSAGE_ID"] == message_id
    assert (copy.born_host, copy.body_crc) == (origin.born_host, origin.body_crc)
    assert copy.store_timestamp == origin.store_timestamp + 5000


@pytest.mark.parametrize("emulate", [4, 5])
async def test_the_4_line_keeps_the_host_that_stored_the_message(
    broker_maker: MakeBroker, emulate: int
) -> None:
    broker = broker_maker(emulate=emulate)
    offset, _ = put(broker)
    origin_host, broker.sending.store_host = broker.sending.store_host, bytes(8)
    await send_back(broker, offset)
    assert newest(broker, SCHEDULE_TOPIC, 2).store_host == (origin_host if emulate == 4 else bytes(8))


async def test_one_of_the_queues_that_the_group_wants(broker: Broker) -> None:
    broker.groups.update(SubscriptionGroupConfig(group_name="GG", retry_queue_nums=3))
    offset, _ = put(broker)
    await send_back(broker, offset)
    real_queue = int(decode_properties(newest(broker, SCHEDULE_TOPIC, 2).properties)["REAL_QID"])
    assert 0 <= real_queue < 3


async def test_it_is_counted(broker: Broker) -> None:
    offset, _ = put(broker)
    await send_back(broker, offset)
    await send_back(broker, offset, -1, origin_topic="T2")
    find = broker.statistics.find
    assert find("SNDBCK_PUT_NUMS", "T2@GG") is not None
    assert find("TOPIC_PUT_NUMS", SCHEDULE_TOPIC) is not None
    assert find("QUEUE_PUT_NUMS", f"{SCHEDULE_TOPIC}@2") is not None
    assert find("SNDBCK2DLQ_TIMES", "null@T2@GG@SEND_BACK_TO_DLQ") is not None
    assert find("TOPIC_PUT_NUMS", "%DLQ%GG") is None


async def test_clients_before_3_4_9_send_no_limit(broker: Broker) -> None:
    for version, dead in ((120, 0), (V3_4_9, 1)):
        offset, _ = put(broker)
        assert (await send_back(broker, offset, max_reconsume_times=0, version=version)).code == 0
        assert broker.store.max_offset("%DLQ%GG", 0) == dead


async def test_the_remark_names_the_status_of_a_store_that_refuses(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    offset, _ = put(broker)
    monkeypatch.setattr(broker.store.admission, "accepting", False)
    answer = await send_back(broker, offset)
    assert (answer.code, answer.remark) == (1, "SERVICE_NOT_AVAILABLE")


async def test_the_group_of_a_pop_retry_topic_is_the_part_before_the_plus(broker: Broker) -> None:
    request = send_request("%RETRY%GG+T2", reconsume_times=17)
    assert redirect_if_exhausted(broker.sending, request, 513, 5) == ("%DLQ%GG", 0, ("DELAY", "-1"))
    assert "GG" in broker.groups


async def test_a_copy_is_answered_once_it_is_on_disk(syncing: Broker) -> None:
    """SYNC_FLUSH: the consumer moves its offset then, and a power loss must not take the copy."""
    offset, _ = put(syncing)
    syncing.store.flush_pass()
    await turns()
    request = ConsumerSendMsgBack(offset=offset, group="GG", delay_level=0)
    assert (await after_the_flush(syncing, request)).code == 0
