"""gRPC clients of a cluster: every master has a port, routes name them all, and they outlive their brokers."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from pocketmq.broker.errors import StartError
from pocketmq.grpc_endpoint import messages as m
from pocketmq.testing import RocketMQCluster, TestingError

from grpc_client import GrpcClient
from grpc_companion import T, sent


@pytest.fixture
async def cluster() -> AsyncIterator[RocketMQCluster]:
    async with RocketMQCluster(brokers=2, emulate="5") as cluster:
        await asyncio.to_thread(cluster.grow, "orders", 2)
        yield cluster


async def endpoint(cluster: RocketMQCluster, broker: str) -> str:
    return await asyncio.to_thread(lambda: cluster.broker(broker).grpc_endpoint)


async def route(address: str) -> dict[str, str]:
    """Each broker of the topic, with the address at which a client reaches it."""
    async with GrpcClient.connected(address) as client:
        reply = await client.ask(m.QueryRouteRequest(topic=T))
    found = {}
    for queue in reply.message_queues:
        (one,) = queue.broker.endpoints.addresses
        found[queue.broker.name] = f"{one.host}:{one.port}"
    return found


async def test_a_route_names_every_master_at_its_own_port(cluster: RocketMQCluster) -> None:
    addresses = {name: await endpoint(cluster, name) for name in ("b0", "b1")}
    assert await asyncio.to_thread(lambda: cluster.grpc_endpoint) == ";".join(addresses.values())
    for address in addresses.values():
        assert await route(address) == addresses
    added = await asyncio.to_thread(cluster.add_broker)
    await asyncio.to_thread(cluster.grow, "orders", 2)
    addresses["b2"] = await endpoint(cluster, added.name)
    assert await route(addresses["b0"]) == addresses


@pytest.mark.parametrize("ending", ["stop", "kill"])
async def test_a_broker_that_is_back_has_its_port_again(cluster: RocketMQCluster, ending: str) -> None:
    address = await endpoint(cluster, "b1")
    broker = cluster.broker("b1")
    async with GrpcClient.connected(address) as client:
        assert (await client.ask(sent(b"before"))).status == m.OK
        await asyncio.to_thread(getattr(broker, ending))
        await asyncio.wait_for(client.is_closed.wait(), 3)
        assert (client.goaway is None) is (ending == "kill"), "a killed process tells nobody"
    assert list(await route(await endpoint(cluster, "b0"))) == ["b0"]
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address.split(":"))
    await asyncio.to_thread(broker.start)
    assert broker.grpc_endpoint == address
    assert (await route(address))["b1"] == address
    async with GrpcClient.connected(address) as client:
        assert (await client.ask(sent(b"after"))).status == m.OK
    stored = cluster.call(lambda: sum(broker.broker.store.max_offset("orders", queue) for queue in (0, 1)))
    assert stored == 2


async def test_requests_and_faults_of_a_cluster_know_grpc_clients(cluster: RocketMQCluster) -> None:
    cluster.faults.refuse(code="SendMessage", broker="b1", response="TOO_MANY_REQUESTS")
    codes = {}
    for name in ("b0", "b1"):
        async with GrpcClient.connected(await endpoint(cluster, name)) as client:
            codes[name] = (await client.ask(sent())).status.code
    assert codes == {"b0": m.Code.OK, "b1": m.Code.TOO_MANY_REQUESTS}
    assert [one.broker for one in cluster.requests.find(code="SendMessage")] == ["b0", "b1"]
    await asyncio.to_thread(cluster.grow, "others", 1)  # is registered over the connection of the broker
    asked = [one for one in cluster.requests.find() if one.name == "GET_ROUTEINFO_BY_TOPIC"]
    await route(await endpoint(cluster, "b0"))
    new = [one for one in cluster.requests.find() if one.name == "GET_ROUTEINFO_BY_TOPIC"][len(asked) :]
    assert [one.is_of_broker for one in new] == [True], "the broker asks for its client"


async def test_a_slow_broker_answers_grpc_clients_late(cluster: RocketMQCluster) -> None:
    address, broker = await endpoint(cluster, "b0"), cluster.broker("b0")
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(broker.slow, 0.2)
    async with GrpcClient.connected(address) as client:
        began = loop.time()
        assert (await client.ask(sent())).status == m.OK
        assert loop.time() - began >= 0.2
        await asyncio.to_thread(broker.slow, 1000)
        await asyncio.to_thread(broker.slow, 0)
        assert (await client.ask(sent())).status == m.OK


async def test_a_slave_and_the_old_line_have_no_grpc_port() -> None:
    async with RocketMQCluster(brokers=1, slaves=1, emulate="5") as cluster:
        with pytest.raises(TestingError, match="b0-1 is a slave and has no gRPC port: use b0"):
            await endpoint(cluster, "b0-1")
    async with RocketMQCluster(brokers=1, emulate="4.9") as cluster:
        with pytest.raises(StartError, match="a gRPC port needs emulate=5"):
            await endpoint(cluster, "b0")
    with pytest.raises(StartError, match="a cluster chooses grpcServerPort"):
        RocketMQCluster(grpcServerPort=8081)
