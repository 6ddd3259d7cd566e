"""Checks of a send: which topic it creates, which queue it gets, and the topic as a remark shows it."""

from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.send import SendMessageV2

from broker_fakes import Asked, FakeConnection, MakeBroker, ask


async def send(broker: Broker, topic: str, **changes: Any) -> Asked:
    fields: dict[str, Any] = {
        "producer_group": "pg",
        "topic": topic,
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp": 1,
        "flag": 0,
    }
    return await ask(broker, SendMessageV2(**{**fields, **changes}), b"x", connection=FakeConnection(50_001))


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
    assert (await send(broker, "%RETRY%g", unit_mode=unit_mode)).code == 0
    assert created(broker, "%RETRY%g") == (1, 1, 6, flag)
    assert (await send(broker, "other", unit_mode=unit_mode)).code == 17


async def test_retry_topic_that_the_template_makes_is_like_others(broker: Broker) -> None:
    assert (await send(broker, "%RETRY%g")).code == 0
    assert created(broker, "%RETRY%g") == (4, 4, 6, 0)


@pytest.mark.parametrize(
    ("topic", "unit_mode", "flag"), [("t", True, 1), ("%RETRY%g", True, 2), ("t", False, 0)]
)
async def test_topic_made_in_unit_mode_has_its_flag(
    broker: Broker, topic: str, unit_mode: bool, flag: int
) -> None:
    assert (await send(broker, topic, unit_mode=unit_mode)).code == 0
    assert created(broker, topic)[3] == flag


@pytest.mark.parametrize("order", [False, True])
async def test_wrong_queue_is_answered_with_the_whole_topic(
    broker: Broker, broker4: Broker, order: bool
) -> None:
    config = TopicConfig(topic_name="made", read_queue_nums=2, write_queue_nums=3, perm=4, order=order)
    config.attributes["+message.type"] = "FIFO"
    for one, attributes in ((broker, ", attributes={message.type=FIFO}"), (broker4, "")):
        one.topics.update(config)
        assert (await send(one, "made", queue_id=2)).code == 0, "it is written to, though not read"
        text = (
            "TopicConfig [topicName=made, readQueueNums=2, writeQueueNums=3, perm=R--, topicFilterType=SINGLE_TAG, "
            f"topicSysFlag=0, order={'true' if order else 'false'}{attributes}]"
        )
        remark = (await send(one, "made", queue_id=3)).remark
        assert remark == f"request queueId[3] is illegal, {text} Producer: 127.0.0.1:50001"


@pytest.mark.parametrize(("permission", "code"), [(6, 0), (2, 0), (4, 16), (0, 16)])
async def test_order_topic_is_closed_only_where_the_broker_is_not_writable(
    broker_maker: MakeBroker, permission: int, code: int
) -> None:
    broker = broker_maker(broker_permission=permission)
    broker.topics.update(TopicConfig(topic_name="ordered", order=True))
    broker.topics.update(TopicConfig(topic_name="plain"))
    answer = await send(broker, "ordered")
    assert answer.code == code
    assert code == 0 or answer.remark == "the broker[127.0.0.1] sending message is forbidden"
    assert (await send(broker, "plain")).code == 0
    assert (await send(broker, "bad topic")).code == 29, "its name is checked next"


@pytest.mark.parametrize("queues", [1, 3])
async def test_broker_chooses_among_all_queues_that_are_written(broker: Broker, queues: int) -> None:
    broker.topics.update(TopicConfig(topic_name="t", read_queue_nums=8, write_queue_nums=queues))
    chosen = {(await send(broker, "t", queue_id=-1)).fields["queueId"] for _ in range(60)}
    assert chosen == {str(queue_id) for queue_id in range(queues)}
