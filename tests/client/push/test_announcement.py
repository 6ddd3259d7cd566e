"""What a consumer asks the brokers about its subscriptions at the start."""

from typing import Any

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import PushConsumer, RequestRefused

from client_waits import Asked, Seen, port_of, send

CHECK = "CHECK_CLIENT_CONFIG"


@pytest.fixture
async def filtering(node: Node) -> Node:
    """A broker that filters by SQL92, with a topic."""
    node.broker.config.enable_property_filter = True
    await send(node.namesrv_address, "T", 1)
    return node


def consumer(node: Node, asked: Asked, expression: str, kind: str, **options: Any) -> PushConsumer:
    member = PushConsumer("g", Seen(), namesrv_addr=node.namesrv_address, hooks=[asked], **options)
    member.subscribe("T", expression, kind)
    return member


async def test_an_expression_that_the_broker_refuses_fails_the_start(filtering: Node) -> None:
    asked = Asked()
    with pytest.raises(RequestRefused):
        await consumer(filtering, asked, "a >", "SQL92").start()
    assert len(asked.ports(CHECK)) == 1


@pytest.mark.parametrize("vip", [False, True])
async def test_expressions_are_checked_at_the_port_where_the_official_client_asks(
    filtering: Node, vip: bool
) -> None:
    """`MQClientAPIImpl.checkClientInBroker` uses the VIP channel; tags are not checked."""
    asked = Asked()
    async with consumer(filtering, asked, "a || b", "TAG", vip_channel_enabled=vip, instance_name="tags"):
        assert asked.ports(CHECK) == []
    async with consumer(filtering, asked, "a > 1", "SQL92", vip_channel_enabled=vip, instance_name="sql"):
        assert asked.ports(CHECK) == [port_of(filtering.broker_address) - 2 * vip]
