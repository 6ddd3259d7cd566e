"""Requests that the broker passes on to consumers, as the official brokers 4.9.7 and 5.5.0 did it."""

from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import PeerError
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.offset import InvokeBrokerToGetConsumerStatus
from pocketmq.protocol.requests.to_client import (
    ConsumeMessageDirectly,
    GetConsumerRunningInfo,
    GetConsumerStatusFromClient,
)
from pocketmq.protocol.text import fastjson
from pocketmq.protocol.wire.command import Command

from broker.admin.online_members import UNSET, online, queue
from broker_fakes import Asked, ask, store_message

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


async def test_a_client_that_is_too_old(broker: Broker) -> None:
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


async def test_a_missing_message_is_an_error_and_no_client_is_called(broker: Broker) -> None:
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


async def test_every_member_answers_its_offsets(broker: Broker) -> None:
    one, two, three = online(broker, "c1", 1), online(broker, "c2", 2), online(broker, "c3", 3)
    one.answers_by_code[221] = standing(5, 6)
    two.answers_by_code[221] = Command(1, remark="not exist in this consumer")
    answer = await ask(broker, InvokeBrokerToGetConsumerStatus(topic="t", group="g"))
    assert (answer.code, answer.remark) == (0, UNSET)
    assert answer.json == {"consumerTable": {"c1": {queue(0): 5, queue(1): 6}}, "messageQueueTable": {}}
    assert three.questions == [(GetConsumerStatusFromClient(topic="t", group="g"), b"")]


async def test_one_member_can_be_chosen(broker: Broker) -> None:
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
