"""Questions passed on to consumers and offset resets, as the official brokers 4.9.7 and 5.5.0 did it."""

from typing import Any

import pytest
from pocketmq.broker.admin import client_relay_handlers as relay_handlers
from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import PeerError
from pocketmq.broker.membership.client import Client
from pocketmq.protocol.bodies.client import SubscriptionData
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.offset import InvokeBrokerToGetConsumerStatus, InvokeBrokerToResetOffset
from pocketmq.protocol.requests.to_client import (
    ConsumeMessageDirectly,
    GetConsumerRunningInfo,
    GetConsumerStatusFromClient,
    ResetConsumerClientOffset,
)
from pocketmq.protocol.text import fastjson
from pocketmq.protocol.wire.command import Command
from pocketmq.store import VirtualClock

from broker_fakes import Asked, FakeConnection, MakeBroker, ask, connect, store_message

assert relay_handlers  # its handlers are what is tested

UNSET = "not set any response code"


def online(broker: Broker, client_id: str = "c", port: int = 4001, version: int = 513) -> FakeConnection:
    connection = connect(broker, port)
    broker.membership.consumers.register(
        "g",
        Client(connection, client_id, "JAVA", version, 0),
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscriptions=[SubscriptionData(topic="t", sub_string="*")],
    )
    connection.notices.clear()
    return connection


def queue(queue_id: int) -> MessageQueue:
    return MessageQueue("t", "broker-a", queue_id)


# -- 307


async def test_the_answer_of_the_client_is_passed_on_whole(broker: Broker) -> None:
    one = online(broker)
    one.answers_by_code[307] = Command(0, remark="hi", fields={"x": "y"}, body=b'{"properties":{}}')
    request = GetConsumerRunningInfo(consumer_group="g", client_id="c", jstack_enable=True)
    answer = await ask(broker, request)
    assert answer == Asked(0, "hi", {"x": "y"}, b'{"properties":{}}')
    assert one.questions == [(request, b"")]


async def test_a_refusal_of_the_client_is_passed_on_too(broker: Broker) -> None:
    remark = "The Consumer Group <g> not exist in this consumer"
    online(broker).answers_by_code[307] = Command(1, remark=remark)
    answer = await ask(broker, GetConsumerRunningInfo(consumer_group="g", client_id="c"))
    assert (answer.code, answer.remark) == (1, remark)


@pytest.mark.parametrize(("group", "client_id"), [("g", "other"), ("nope", "c")])
async def test_a_client_that_is_not_there(broker: Broker, group: str, client_id: str) -> None:
    online(broker)
    answer = await ask(broker, GetConsumerRunningInfo(consumer_group=group, client_id=client_id))
    assert (answer.code, answer.remark) == (1, f"The Consumer <{group}> <{client_id}> not online")


async def test_a_client_too_old_to_be_asked(broker: Broker) -> None:
    one = online(broker, version=20)
    answer = await ask(broker, GetConsumerRunningInfo(consumer_group="g", client_id="c"))
    assert answer.code == 1
    assert answer.remark == (
        "The Consumer <c> Version <V3_0_3_SNAPSHOT> too low to finish, please upgrade it to V3_1_8_SNAPSHOT"
    )
    assert one.questions == []


async def test_a_client_that_does_not_answer_is_a_timeout_after_ten_seconds(
    broker: Broker, broker4: Broker
) -> None:
    for one, slash in ((broker, "/"), (broker4, "")):
        online(one)
        answer = await ask(one, GetConsumerRunningInfo(consumer_group="g", client_id="c"))
        assert answer.code == 207
        assert answer.remark == (
            "consumer <g> <c> Timeout: org.apache.rocketmq.remoting.exception.RemotingTimeoutException: "
            f"wait response on the channel <{slash}127.0.0.1:4001> timeout, 10000(ms)"
        )


async def test_a_connection_that_ends_meanwhile_is_no_timeout(broker: Broker) -> None:
    one = online(broker)
    one.answers_by_code[307] = PeerError("connection to 127.0.0.1:4001 closed")
    one.closed = True
    answer = await ask(broker, GetConsumerRunningInfo(consumer_group="g", client_id="c"))
    assert answer.code == 1
    assert answer.remark == "invoke consumer <g> <c> Exception: connection to 127.0.0.1:4001 closed"


# -- 309


async def test_the_message_travels_as_stored_with_what_the_broker_knows(broker: Broker) -> None:
    message_id = store_message(broker, "t", properties={"TAGS": "A"})
    broker.topics.update(TopicConfig(topic_name="t", topic_sys_flag=1))
    broker.groups.update(SubscriptionGroupConfig(group_name="g", group_sys_flag=2))
    one = online(broker)
    one.answers_by_code[309] = Command(0, body=b"{}")
    request = ConsumeMessageDirectly(consumer_group="g", client_id="c", msg_id=message_id, topic="t")
    assert (await ask(broker, request)).body == b"{}"
    passed_on, record = one.questions[0]
    assert passed_on == ConsumeMessageDirectly(
        consumer_group="g",
        client_id="c",
        msg_id=message_id,
        topic="t",
        broker_name="broker-a",
        topic_sys_flag=1,
        group_sys_flag=2,
    )
    stored = broker.store.read_record(0)
    assert stored is not None
    assert record == bytes(stored)


async def test_4_9_adds_only_its_name(broker4: Broker) -> None:
    message_id = store_message(broker4, "t")
    one = online(broker4)
    one.answers_by_code[309] = Command(0)
    await ask(broker4, ConsumeMessageDirectly(consumer_group="g", client_id="c", msg_id=message_id))
    assert one.questions[0][0] == ConsumeMessageDirectly(
        consumer_group="g", client_id="c", msg_id=message_id, broker_name="broker-a"
    )


async def test_a_message_that_is_not_there_is_an_error_and_asks_nobody(broker: Broker) -> None:
    message_id = store_message(broker, "t")
    one = online(broker)
    for bad in (message_id[:-6] + "FFFFFF", "zz", None):
        answer = await ask(broker, ConsumeMessageDirectly(consumer_group="g", client_id="c", msg_id=bad))
        assert answer.code == 1
    assert one.questions == []
    answer = await ask(broker, ConsumeMessageDirectly(consumer_group="g", msg_id=message_id))
    assert (answer.code, answer.remark) == (1, "The Consumer <g> <null> not online")


# -- 223


def standing(*offsets: int) -> Command:
    table = {queue(queue_id): offset for queue_id, offset in enumerate(offsets)}
    return Command(0, body=fastjson.dumps({"messageQueueTable": table, "consumerTable": {}}))


async def test_every_member_is_asked_where_it_stands(broker: Broker) -> None:
    one, two, three = online(broker, "c1", 1), online(broker, "c2", 2), online(broker, "c3", 3)
    one.answers_by_code[221] = standing(5, 6)
    two.answers_by_code[221] = Command(1, remark="not exist in this consumer")
    answer = await ask(broker, InvokeBrokerToGetConsumerStatus(topic="t", group="g"))
    assert (answer.code, answer.remark) == (0, UNSET)
    assert answer.json == {"consumerTable": {"c1": {queue(0): 5, queue(1): 6}}, "messageQueueTable": {}}
    assert three.questions == [(GetConsumerStatusFromClient(topic="t", group="g"), b"")]


async def test_one_member_can_be_asked_alone(broker: Broker) -> None:
    one, two = online(broker, "c1", 1), online(broker, "c2", 2)
    two.answers_by_code[221] = standing(7)
    request = InvokeBrokerToGetConsumerStatus(topic="t", group="g", client_addr="c2")
    assert (await ask(broker, request)).json["consumerTable"] == {"c2": {queue(0): 7}}
    assert one.questions == []
    nobody = InvokeBrokerToGetConsumerStatus(topic="t", group="g", client_addr="zz")
    assert (await ask(broker, nobody)).json["consumerTable"] == {}


async def test_status_of_a_group_that_is_offline_or_too_old_is_an_error(broker: Broker) -> None:
    request = InvokeBrokerToGetConsumerStatus(topic="t", group="g")
    assert (await ask(broker, request)).code == 1
    online(broker, version=20)
    answer = await ask(broker, request)
    assert answer.code == 1
    assert answer.remark == "the client does not support this feature. version=V3_0_3_SNAPSHOT"


# -- 222, kept by the broker


def topic_with_messages(broker: Broker, clock: VirtualClock) -> int:
    """Topic t: 3 read and 2 write queues; three messages in queue 0, one in queue 1, a second apart each."""
    broker.topics.update(TopicConfig(topic_name="t", read_queue_nums=3, write_queue_nums=2))
    broker.groups.update(SubscriptionGroupConfig(group_name="g"))
    first_ms = clock.now_ms()
    for queue_id in (0, 0, 0, 1):
        store_message(broker, "t", queue_id)
        clock.advance(1000)
    return first_ms


def reset(timestamp: int = -1, *, is_force: bool = True, **more: Any) -> InvokeBrokerToResetOffset:
    return InvokeBrokerToResetOffset(
        **{"topic": "t", "group": "g", "timestamp": timestamp, "is_force": is_force, **more}
    )


async def test_a_reset_to_the_end_waits_at_the_broker_for_each_read_queue(
    broker: Broker, clock: VirtualClock
) -> None:
    topic_with_messages(broker, clock)
    one = online(broker)
    answer = await ask(broker, reset())
    assert (answer.code, answer.remark) == (0, None)
    assert answer.json == {"offsetTable": {queue(0): 3, queue(1): 1, queue(2): 0}}
    assert broker.offsets.has_reset("t", "g", 0)
    assert broker.offsets.query("t", "g", 0) == 3
    assert one.notices == []


async def test_a_reset_to_a_time_finds_the_first_message_of_that_time(
    broker: Broker, clock: VirtualClock
) -> None:
    first_ms = topic_with_messages(broker, clock)
    answer = await ask(broker, reset(first_ms + 1000, is_force=False))
    assert answer.json["offsetTable"][queue(0)] == 1


async def test_one_queue_is_reset_to_an_offset_within_its_range(broker: Broker, clock: VirtualClock) -> None:
    topic_with_messages(broker, clock)
    assert (await ask(broker, reset(0, queue_id=0, offset=2))).json == {"offsetTable": {queue(0): 2}}
    assert not broker.offsets.has_reset("t", "g", 1)
    assert (await ask(broker, reset(0, queue_id=0, offset=4))).code == 0  # one past the end is taken
    answer = await ask(broker, reset(0, queue_id=0, offset=5))
    assert (answer.code, answer.remark) == (1, "Target offset 5 not in consume queue range [0-3]")
    assert (await ask(broker, reset(0, queue_id=0, offset=-1))).json == {"offsetTable": {queue(0): 0}}


async def test_resets_the_broker_refuses(
    broker: Broker, broker_maker: MakeBroker, clock: VirtualClock
) -> None:
    topic_with_messages(broker, clock)
    answer = await ask(broker, reset(topic="nope"))
    assert (answer.code, answer.remark) == (17, "Topic nope does not exist")
    answer = await ask(broker, reset(group="nope"))
    assert (answer.code, answer.remark) == (26, "Group nope does not exist")
    broker.topics.update(TopicConfig(topic_name="none", read_queue_nums=0, write_queue_nums=0))
    answer = await ask(broker, reset(topic="none"))
    assert (answer.code, answer.remark) == (1, "No queues to reset.")
    answer = await ask(broker_maker(store={"broker_role": "SLAVE"}), reset())
    assert (answer.code, answer.remark) == (1, "Can not reset offset in slave broker")


# -- 222, pushed to the clients


async def test_4_9_pushes_the_offsets_of_the_write_queues_to_every_member(
    broker4: Broker, clock: VirtualClock
) -> None:
    topic_with_messages(broker4, clock)
    for queue_id in (0, 1):
        broker4.offsets.commit("t", "g", queue_id, 1)
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


async def test_without_force_a_pushed_reset_only_goes_back(broker4: Broker, clock: VirtualClock) -> None:
    first_ms = topic_with_messages(broker4, clock)
    broker4.offsets.commit("t", "g", 0, 2)
    broker4.offsets.commit("t", "g", 1, 0)
    online(broker4)
    answer = await ask(broker4, reset(first_ms + 1000, is_force=False))
    assert answer.json["offsetTable"] == {queue(0): 1, queue(1): 0}
    answer = await ask(broker4, reset(-1, is_force=False))
    assert answer.json["offsetTable"] == {queue(0): 2, queue(1): 0}


async def test_a_tool_written_in_c_has_a_list_pushed(broker4: Broker, clock: VirtualClock) -> None:
    topic_with_messages(broker4, clock)
    for queue_id in (0, 1):
        broker4.offsets.commit("t", "g", queue_id, 1)
    one = online(broker4)
    answer = await ask(broker4, reset(), language="CPP", version=63)
    assert fastjson.loads(one.notices[0][1]) == {
        "offsetTable": [
            {"brokerName": "broker-a", "offset": 3, "queueId": 0, "topic": "t"},
            {"brokerName": "broker-a", "offset": 1, "queueId": 1, "topic": "t"},
        ]
    }
    assert answer.json == {"offsetTable": {queue(0): 3, queue(1): 1}}


async def test_pushed_resets_that_are_refused(broker4: Broker, clock: VirtualClock) -> None:
    topic_with_messages(broker4, clock)
    answer = await ask(broker4, reset(topic="nope"))
    assert answer.code == 1
    assert answer.remark == "[reset-offset] reset offset failed, no topic in this broker. topic=nope"
    answer = await ask(broker4, reset())
    assert (answer.code, answer.remark) == (1, "THe consumer group <g> not exist")
    for queue_id in (0, 1):
        broker4.offsets.commit("t", "g", queue_id, 1)
    answer = await ask(broker4, reset())
    assert answer.code == 206
    assert answer.remark == "Consumer not online, so can not reset offset, Group: g Topic: t Timestamp: -1"
    online(broker4, version=20)
    answer = await ask(broker4, reset())
    assert answer.code == 1
    assert answer.remark == "the client does not support this feature. version=V3_0_3_SNAPSHOT"


async def test_5_x_pushes_too_where_it_is_told_not_to_keep_resets(
    broker_maker: MakeBroker, clock: VirtualClock
) -> None:
    broker = broker_maker(use_server_side_reset_offset=False)
    answer = await ask(broker, reset(topic="nope"))
    assert answer.code == 17
    topic_with_messages(broker, clock)
    for queue_id in (0, 1):
        broker.offsets.commit("t", "g", queue_id, 1)
    one = online(broker)
    assert (await ask(broker, reset())).code == 0
    assert len(one.notices) == 1
    assert not broker.offsets.has_reset("t", "g", 0)


# -- names of old versions
