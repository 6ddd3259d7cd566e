"""314, 43, 45, 308, 343: requests of administrators and slaves about offsets."""

from pocketmq.broker.broker import Broker
from pocketmq.broker.membership.client import Client
from pocketmq.protocol.bodies.client import tag_subscription
from pocketmq.protocol.requests.offset import CloneGroupOffset, QueryCorrectionOffset
from pocketmq.protocol.requests.replication import GetAllConsumerOffset, GetAllDelayOffset

from broker_fakes import ask, connect


def commit(broker: Broker, group: str, *offsets: int, topic: str = "T2") -> None:
    broker.topics.create_for_send(topic, "TBW102", 4)
    for queue_id, offset in enumerate(offsets):
        broker.offsets.commit(topic, group, queue_id, offset)


def bring_online(broker: Broker, group: str, topic: str) -> None:
    broker.membership.consumers.register(
        group,
        Client(connect(broker), "c1", "JAVA", 0, broker.clock.now_ms()),
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscriptions=[tag_subscription(topic, "*", sub_version=1)],
    )


class TestClone:
    async def test_without_a_topic_all_are_cloned(self, broker: Broker) -> None:
        commit(broker, "GA", 5)
        commit(broker, "GA", 7, topic="T3")
        await ask(broker, CloneGroupOffset(src_group="GA", dest_group="GC"))
        assert broker.offsets.topics_of("GC") == {"T2", "T3"}

    async def test_an_online_source_gives_only_what_it_subscribes_to(self, broker: Broker) -> None:
        commit(broker, "GA", 5)
        commit(broker, "GA", 7, topic="T3")
        bring_online(broker, "GA", "T3")
        await ask(broker, CloneGroupOffset(src_group="GA", dest_group="GC"))
        assert broker.offsets.topics_of("GC") == {"T3"}
        await ask(broker, CloneGroupOffset(src_group="GA", dest_group="GD", offline=True))
        assert broker.offsets.topics_of("GD") == {"T2", "T3"}


class TestTables:
    async def test_a_slave_gets_all_offsets(self, broker: Broker) -> None:
        commit(broker, "GA", 5, 6)
        answer = await ask(broker, GetAllConsumerOffset())
        assert b'"offsetTable":{"T2@GA":{0:5,1:6}}' in answer.body

    async def test_a_slave_gets_the_delay_offsets(self, broker: Broker) -> None:
        broker.delays.update(1, 3)
        broker.delays.update(18, 0)
        assert b'"offsetTable":{1:3,18:0}' in (await ask(broker, GetAllDelayOffset())).body


class TestCorrection:
    async def test_the_lowest_offset_of_all_groups_is_answered(self, broker: Broker) -> None:
        commit(broker, "GA", 5, 6)
        commit(broker, "GB", 4, 9)
        answer = await ask(broker, QueryCorrectionOffset(compare_group="GX", topic="T2"))
        assert answer.body == b'{"correctionOffsets":{0:4,1:6}}'
        answer = await ask(
            broker, QueryCorrectionOffset(compare_group="GX", topic="T2", filter_groups="GB,GC")
        )
        assert answer.body == b'{"correctionOffsets":{0:5,1:6}}'
        answer = await ask(broker, QueryCorrectionOffset(compare_group="GX", topic="Zilch"))
        assert answer.body == b'{"correctionOffsets":{}}'

    async def test_a_group_behind_all_others_gets_the_largest_number(self, broker: Broker) -> None:
        commit(broker, "GA", 5, 6)
        commit(broker, "GX", 2, 8)
        request = QueryCorrectionOffset(compare_group="GX", topic="T2", filter_groups="GX")
        answer = await ask(broker, request)
        assert answer.body == b'{"correctionOffsets":{0:9223372036854775807,1:6}}'

    async def test_the_4_line_compares_nothing(self, broker4: Broker) -> None:
        commit(broker4, "GA", 5, 6)
        commit(broker4, "GX", 2, 8)
        request = QueryCorrectionOffset(compare_group="GX", topic="T2", filter_groups="GX")
        assert (await ask(broker4, request)).body == b'{"correctionOffsets":{0:5,1:6}}'
