"""AdminClient against a server in the test's loop: its changes are visible, a refused change says why."""

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import AdminClient, Producer, SubscriptionGroupConfig, TopicConfig
from pocketmq.client.admin.topics import parse_attributes
from pocketmq.client.errors import (
    ClientError,
    NotOnline,
    NotReachable,
    RequestRefused,
    RouteNotFound,
    ValidationFailed,
)

from client_admin import CLUSTER, QUEUE, TOPIC, make_groups, make_topic, member, send

# -- errors


async def test_the_second_name_server_is_asked_if_the_first_is_down(namesrv_addr: str) -> None:
    async with AdminClient(namesrv_addr=f"127.0.0.1:1;{namesrv_addr}") as client:
        assert "TBW102" in await client.topics()
        with pytest.raises(NotReachable):
            await client.set_order_conf("InBoth", "broker-a:4")
        assert await client.order_conf("InBoth") == "broker-a:4", "the running one has it"


async def test_a_change_needs_a_broker_or_a_cluster_not_both(admin: AdminClient, node: Node) -> None:
    config = TopicConfig(topic_name=TOPIC)
    with pytest.raises(ClientError, match="give either"):
        await admin.update_topic(config)
    with pytest.raises(ClientError, match="give either"):
        await admin.update_topic(config, address=node.broker_address, cluster=CLUSTER)
    with pytest.raises(ClientError, match="clusterName"):
        await admin.update_topic(config, cluster="absent")


# -- topics


async def test_a_topic_has_its_attributes_and_is_one_of_its_cluster(admin: AdminClient, node: Node) -> None:
    config = TopicConfig(topic_name=TOPIC, attributes={"+message.type": "FIFO"})
    await admin.update_topic(config, cluster=CLUSTER)
    assert TOPIC in await admin.topics_of_cluster(CLUSTER)
    assert (await admin.topic_configs(node.broker_address))[TOPIC].attributes["message.type"] == "FIFO"


async def test_bad_topics_are_refused(admin: AdminClient) -> None:
    with pytest.raises(RequestRefused, match="illegal characters") as caught:
        await admin.update_topic(TopicConfig(topic_name="not*a*topic"), cluster=CLUSTER)
    assert caught.value.code == 29
    with pytest.raises(ClientError, match="topicPermission value: 9 is invalid"):
        await admin.update_topic(TopicConfig(topic_name=TOPIC, perm=9), cluster=CLUSTER)
    with pytest.raises(RouteNotFound):
        await admin.topic_status("absent")


async def test_status_counts_what_was_sent(admin: AdminClient, namesrv_addr: str) -> None:
    await make_topic(admin)
    await send(namesrv_addr, b"one", b"two")
    table = (await admin.topic_status(TOPIC)).offset_table
    assert {queue.queue_id: offset.max_offset for queue, offset in table.items()} == {0: 2, 1: 0}
    assert await admin.max_offset(QUEUE) == 2
    assert await admin.min_offset(QUEUE) == 0
    assert await admin.search_offset(QUEUE, 0) == 0
    assert 0 < await admin.earliest_store_time(QUEUE) <= table[QUEUE].last_update_timestamp


async def test_order_configurations_are_merged_by_broker(admin: AdminClient) -> None:
    with pytest.raises(RequestRefused) as caught:
        await admin.order_conf("Ordered")
    assert caught.value.code == 22
    assert await admin.update_order_conf("Ordered", "broker-a:4") == "broker-a:4"
    assert await admin.update_order_conf("Ordered", "broker-b:2") == "broker-a:4;broker-b:2"
    assert await admin.update_order_conf("Ordered", "broker-a:1") == "broker-a:1;broker-b:2"
    await admin.set_order_conf("Ordered", "broker-c:1")
    assert await admin.order_conf("Ordered") == "broker-c:1"


def test_attributes_are_read_as_changes() -> None:
    assert parse_attributes("+a=b,-c") == {"+a": "b", "-c": ""}
    assert parse_attributes("") == {}
    for text in ("a=b", "+a", "-", "+=b", "+a=b,+a=c", ","):
        with pytest.raises(ClientError):
            parse_attributes(text)


# -- groups


async def test_a_group_is_deleted_with_its_offsets_or_without(admin: AdminClient, node: Node) -> None:
    config = SubscriptionGroupConfig(group_name="billing", retry_max_times=3)
    await admin.update_group(config, cluster=CLUSTER)
    await admin.delete_group("billing", cluster=CLUSTER)
    anew = await admin.group_config(node.broker_address, "billing")
    assert anew is not None, "5.x creates it again because its offsets remain"
    assert anew.retry_max_times == 16
    await admin.delete_group("billing", cluster=CLUSTER, remove_offset=True)
    assert await admin.group_config(node.broker_address, "billing") is None


async def test_online_members_and_producers_are_listed(admin: AdminClient, node: Node) -> None:
    await make_topic(admin)
    await send(node.namesrv_address, b"one")
    with pytest.raises(RouteNotFound):
        await admin.consumer_connections("billing")
    async with (
        member(node.namesrv_address, "billing", count=1, tags="created || paid") as consumer,
        Producer("online", namesrv_addr=node.namesrv_address) as producer,
    ):
        connections = await admin.consumer_connections("billing")
        assert [one.client_id for one in connections.connection_set] == [consumer.client_id]
        assert connections.subscription_table[TOPIC].sub_string == "created || paid"
        info = await admin.consumer_running_info("billing", consumer.client_id)
        assert {queue.queue_id for queue in info.mq_table if queue.topic == TOPIC} == {0, 1}
        assert info.mq_table[QUEUE].commit_offset == 1
        assert await admin.groups_of_topic(TOPIC) == ["billing"]
        assert TOPIC in await admin.topics_of_group("billing")
        await producer.send(TOPIC, b"hello")
        producers = await admin.producer_connections("online", TOPIC)
        assert [one.client_id for one in producers.connection_set] == [producer.client_id]
        assert "online" in await admin.producers(node.broker_address)
        with pytest.raises(RequestRefused):
            await admin.producer_connections("absent", TOPIC)
    with pytest.raises(NotOnline):
        await admin.consumer_connections("billing")


# -- offsets


async def test_lag_is_the_number_of_unconsumed_messages(admin: AdminClient, namesrv_addr: str) -> None:
    await make_topic(admin)
    await send(namesrv_addr, b"one", b"two")
    async with member(namesrv_addr, "billing", count=2):
        assert await admin.lag("billing") == 0
        for blank in ("", " "):
            with pytest.raises(ValidationFailed):
                await admin.lag(blank, TOPIC)
    await send(namesrv_addr, b"three")
    stats = await admin.consume_stats("billing", TOPIC)
    assert (stats.total_diff, stats.offset_table[QUEUE].consumer_offset) == (1, 2)


async def test_a_group_skips_what_has_accumulated(admin: AdminClient, namesrv_addr: str) -> None:
    await make_topic(admin)
    await make_groups(admin, "billing")
    await send(namesrv_addr, b"one", b"two", b"three")
    assert (await admin.skip_accumulated("billing", TOPIC))[QUEUE] == 3
    with pytest.raises(RouteNotFound):
        await admin.reset_offsets("billing", "absent", 0)


async def test_a_4_9_broker_without_members_is_reset_queue_by_queue(admin: AdminClient, node: Node) -> None:
    await make_topic(admin)
    await send(node.namesrv_address, b"one", b"two", b"three")
    await make_groups(admin, "billing", "fresh")
    await admin.set_offset("billing", QUEUE, 1)
    rollbacks = await admin.reset_offsets_offline("billing", TOPIC, -1)
    assert (rollbacks[0].queue_id, rollbacks[0].consumer_offset, rollbacks[0].rollback_offset) == (0, 1, 3)
    back = await admin.reset_offsets_offline("billing", TOPIC, 0, is_force=False)
    assert back[0].rollback_offset == 0
    forward = await admin.reset_offsets_offline("billing", TOPIC, -1, is_force=False)
    assert (forward[0].timestamp_offset, forward[0].rollback_offset) == (3, 0), "only backwards"
    fresh = await admin.reset_offsets_offline("fresh", TOPIC, -1)
    assert [(one.queue_id, one.consumer_offset, one.rollback_offset) for one in fresh] == [
        (0, 0, 3),
        (1, 0, 0),
    ]


# -- brokers


async def test_addresses_and_names_of_brokers_lead_to_each_other(admin: AdminClient, node: Node) -> None:
    assert await admin.broker_addresses(CLUSTER) == [node.broker_address]
    assert await admin.broker_name_at(node.broker_address) == "broker-a"
    with pytest.raises(ClientError):
        await admin.broker_name_at("127.0.0.1:1")
