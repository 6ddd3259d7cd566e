"""A send to a topic without a route says why there is none, so that a person knows what to do."""

import re

import pytest
from pocketmq.client import Producer, RequestRefused, RouteNotFound, SendFailed
from pocketmq.client.producing.send_retry import NOT_FOUND_TOPIC_EXCEPTION
from pocketmq.testing import EmbeddedServer, RocketMQCluster


async def failure(namesrv_addr: str, **options: str) -> SendFailed:
    async with Producer(
        "p", namesrv_addr=namesrv_addr, create_topic_key=options.get("template", "TBW102")
    ) as one:
        with pytest.raises(SendFailed) as caught:
            await one.send("orders", b"x")
    assert caught.value.code == NOT_FOUND_TOPIC_EXCEPTION
    return caught.value


async def test_a_topic_that_nobody_may_create_is_to_be_created_first() -> None:
    with EmbeddedServer(autoCreateTopicEnable=False) as server:
        error = await failure(server.namesrv_addr)
    assert str(error) == (
        "No route info of this topic: orders; it does not exist, and is not created by a send "
        "(autoCreateTopicEnable=false at broker-a): create it first (code 10005 no route)"
    )
    assert isinstance(error.__cause__, RouteNotFound)
    assert error.retriable


async def test_a_template_that_does_not_exist_is_named() -> None:
    with EmbeddedServer() as server:
        error = await failure(server.namesrv_addr, template="mine")
    assert str(error).endswith(
        "; it does not exist, and neither does its template mine (code 10005 no route)"
    )


async def test_a_name_server_without_brokers_is_named() -> None:
    with RocketMQCluster(brokers=1) as cluster:
        cluster.broker("b0").stop()
        error = await failure(cluster.namesrv_addr)
        assert str(error) == (
            f"No route info of this topic: orders; no broker is registered at name server {cluster.namesrv_addr} "
            "(code 10005 no route)"
        )


async def test_at_most_three_brokers_are_named() -> None:
    with RocketMQCluster(brokers=5, autoCreateTopicEnable=False) as cluster:
        error = await failure(cluster.namesrv_addr)
    assert "at b0, b1, b2 and 2 more)" in str(error)


async def test_a_broker_in_place_of_a_name_server_is_recognised() -> None:
    with EmbeddedServer() as server:
        error = await failure(server.broker_addr)
        expected = (
            f"{server.broker_addr} is no name server, but perhaps a broker: namesrv_addr must be the address"
        )
        assert re.search(re.escape(expected), str(error))
    assert isinstance(error.__cause__, RequestRefused)
    assert not error.retriable


async def test_a_name_server_that_answers_no_more_leaves_the_official_words() -> None:
    with EmbeddedServer(autoCreateTopicEnable=False) as server:
        server.faults.refuse(code="GET_BROKER_CLUSTER_INFO")
        error = await failure(server.namesrv_addr)
    assert str(error) == "No route info of this topic: orders (code 10005 no route)"
