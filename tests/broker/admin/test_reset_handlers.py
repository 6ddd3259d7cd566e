"""Resets of offsets (222): at the broker, and pushed to the members of the group.

What 4.9.7 and 5.5.0 answer to one connection is in the recorded conversation `administration`.
"""

from typing import Any

from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.offset import InvokeBrokerToResetOffset
from pocketmq.protocol.requests.to_client import ResetConsumerClientOffset
from pocketmq.protocol.text import fastjson

from broker.admin.online_members import UNSET, online, queue
from broker_fakes import MakeBroker, ask, store_message

# -- 222, kept by the broker


def topic_with_messages(broker: Broker, *committed: int) -> int:
    """Topic t: 3 read and 2 write queues; three messages in queue 0, one in queue 1, a second apart each.

    `committed` are offsets of the group, by queue. Returns the time of the first message.
    """
    broker.topics.update(TopicConfig(topic_name="t", read_queue_nums=3, write_queue_nums=2))
    broker.groups.update(SubscriptionGroupConfig(group_name="g"))
    first_ms = broker.clock.now_ms()
    for queue_id in (0, 0, 0, 1):
        store_message(broker, "t", queue_id)
        broker.clock.advance(1000)
    for queue_id, offset in enumerate(committed):
        broker.offsets.commit("t", "g", queue_id, offset)
    return first_ms


def reset(timestamp: int = -1, *, is_force: bool = True, **more: Any) -> InvokeBrokerToResetOffset:
    return InvokeBrokerToResetOffset(
        **{"topic": "t", "group": "g", "timestamp": timestamp, "is_force": is_force, **more}
    )


async def test_a_reset_to_the_end_waits_at_the_broker_for_each_read_queue(broker: Broker) -> None:
    topic_with_messages(broker)
    one = online(broker)
    answer = await ask(broker, reset())
    assert (answer.code, answer.remark) == (0, None)
    assert answer.json == {"offsetTable": {queue(0): 3, queue(1): 1, queue(2): 0}}
    assert broker.offsets.has_reset("t", "g", 0)
    assert broker.offsets.query("t", "g", 0) == 3
    assert one.notices == []


async def test_a_reset_to_a_time_finds_the_first_message_of_that_time(broker: Broker) -> None:
    first_ms = topic_with_messages(broker)
    answer = await ask(broker, reset(first_ms + 1000, is_force=False))
    assert answer.json["offsetTable"][queue(0)] == 1


async def test_a_slave_refuses(broker_maker: MakeBroker) -> None:
    answer = await ask(broker_maker(store={"broker_role": "SLAVE"}), reset())
    assert (answer.code, answer.remark) == (1, "Can not reset offset in slave broker")


# -- 222, pushed to the clients


async def test_4_9_pushes_the_offsets_of_the_write_queues_to_every_member(broker4: Broker) -> None:
    topic_with_messages(broker4, 1, 1)
    members = [online(broker4, "c1", 1), online(broker4, "c2", 2)]
    answer = await ask(broker4, reset())
    assert (answer.code, answer.remark) == (0, UNSET)
    assert answer.json == {"offsetTable": {queue(0): 3, queue(1): 1}}
    for member in members:
        push, body = member.notices[-1]
        assert isinstance(push, ResetConsumerClientOffset)
        assert (push.topic, push.group, push.timestamp, push.is_force) == ("t", "g", -1, False)
        assert fastjson.loads(body) == answer.json
    assert broker4.offsets.query("t", "g", 0) == 1  # the members commit, not the broker


async def test_without_force_a_pushed_reset_only_goes_back(broker4: Broker) -> None:
    first_ms = topic_with_messages(broker4, 2, 0)
    online(broker4)
    answer = await ask(broker4, reset(first_ms + 1000, is_force=False))
    assert answer.json["offsetTable"] == {queue(0): 1, queue(1): 0}
    answer = await ask(broker4, reset(-1, is_force=False))
    assert answer.json["offsetTable"] == {queue(0): 2, queue(1): 0}


async def test_a_tool_written_in_c_has_a_list_pushed(broker4: Broker) -> None:
    topic_with_messages(broker4, 1, 1)
    one = online(broker4)
    answer = await ask(broker4, reset(), language="CPP", version=63)
    assert fastjson.loads(one.notices[0][1]) == {
        "offsetTable": [
            {"brokerName": "broker-a", "offset": 3, "queueId": 0, "topic": "t"},
            {"brokerName": "broker-a", "offset": 1, "queueId": 1, "topic": "t"},
        ]
    }
    assert answer.json == {"offsetTable": {queue(0): 3, queue(1): 1}}


async def test_a_member_that_is_too_old_refuses_a_pushed_reset(broker4: Broker) -> None:
    topic_with_messages(broker4, 1, 1)
    online(broker4, version=20)
    answer = await ask(broker4, reset())
    assert answer.code == 1
    assert answer.remark == "the client does not support this feature. version=V3_0_3_SNAPSHOT"


async def test_5_x_also_pushes_if_it_must_not_keep_resets(broker_maker: MakeBroker) -> None:
    broker = broker_maker(use_server_side_reset_offset=False)
    topic_with_messages(broker, 1, 1)
    one = online(broker)
    assert (await ask(broker, reset())).code == 0
    assert len(one.notices) == 1
    assert not broker.offsets.has_reset("t", "g", 0)
