"""What a consumer asks the brokers about its subscriptions at the start."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.node import Node
from pocketmq.client.errors import RequestRefused
from pocketmq.client.hooks.rpc_hooks import RPCHook
from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.protocol.wire.command import RawBody
from pocketmq.protocol.wire.schema import Request
from pocketmq.store.config import StoreConfig

from client_waits import Seen, port_of, send
from ports import fixed_port


class Checks(RPCHook):
    """The ports that were asked to check an expression."""

    def __init__(self) -> None:
        self.ports: list[int] = []

    def before_request(
        self, address: str, request: Request[Any], fields: dict[str, str], body: RawBody | None
    ) -> None:
        if request.name == "CHECK_CLIENT_CONFIG":
            self.ports.append(port_of(address))


@pytest.fixture
async def filtering(tmp_path: Path) -> AsyncIterator[Node]:
    """A broker that filters by SQL92, on a port whose VIP port is free as well."""
    node = Node(
        BrokerConfig(
            listen_port=fixed_port(),
            enable_property_filter=True,
            store=StoreConfig(store_path_root_dir=str(tmp_path / "store")),
        ),
        NameServerConfig(listen_port=0),
    )
    await node.start()
    yield node
    await node.stop()


def consumer(node: Node, checks: Checks, expression: str, kind: str, **options: Any) -> PushConsumer:
    member = PushConsumer("g", Seen(), namesrv_addr=node.namesrv_address, hooks=[checks], **options)
    member.subscribe("T", expression, kind)
    return member


async def test_an_expression_that_the_broker_refuses_fails_the_start(filtering: Node) -> None:
    checks = Checks()
    await send(filtering.namesrv_address, "T", 1)
    member = consumer(filtering, checks, "a >", "SQL92")
    with pytest.raises(RequestRefused):
        await member.start()
    assert len(checks.ports) == 1


@pytest.mark.parametrize("vip", [False, True])
async def test_expressions_are_checked_at_the_port_where_the_official_client_asks(
    filtering: Node, vip: bool
) -> None:
    """`MQClientAPIImpl.checkClientInBroker` uses the VIP channel; tags are not checked."""
    checks = Checks()
    await send(filtering.namesrv_address, "T", 1)
    async with consumer(filtering, checks, "a || b", "TAG", vip_channel_enabled=vip, instance_name="tags"):
        assert checks.ports == []
    async with consumer(filtering, checks, "a > 1", "SQL92", vip_channel_enabled=vip, instance_name="sql"):
        assert checks.ports == [port_of(filtering.broker_address) - 2 * vip]
