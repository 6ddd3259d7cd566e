"""QueryRoute: the queues of a topic as clients see them."""

from typing import Any

import pytest
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.name_server.name_server import NameServer
from pocketmq.grpc_endpoint.messages import AddressScheme, Code, MessageType, QueryRouteRequest, Resource
from pocketmq.protocol.bodies.routes import BrokerData, QueueData, TopicRouteData
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic

from broker_fakes import turns
from grpc_calls import GrpcBroker


def route(grpc: GrpcBroker, topic: str, namespace: str = "") -> Any:
    request = QueryRouteRequest(topic=Resource(name=topic, resource_namespace=namespace))
    return grpc.call(request)


async def test_mixed_topic_takes_four_types(grpc: GrpcBroker) -> None:
    grpc.topic("t", "MIXED", queues=1)
    (queue,) = route(grpc, "t").message_queues
    names = [MessageType(kind).name for kind in queue.accept_message_types]
    assert names == ["NORMAL", "FIFO", "DELAY", "TRANSACTION"]


async def test_unknown_topic_is_made_unless_strict(grpc: GrpcBroker, strict: GrpcBroker) -> None:
    assert len(route(grpc, "new").message_queues) == 4
    assert grpc.broker.topics.find("new") is not None
    reply = route(strict, "new")
    assert reply.status.code == Code.TOPIC_NOT_FOUND
    assert reply.status.message == (
        "CODE: 17  DESC: No topic route info in name server for the topic: new\n"
        "For more information, please visit the url, https://rocketmq.apache.org/docs/bestPractice/06FAQ"
    )
    assert strict.broker.topics.find("new") is None


async def test_unknown_topic_is_not_found_where_topics_are_not_made(grpc_maker: Any) -> None:
    grpc = grpc_maker(auto_create_topic_enable=False)
    assert route(grpc, "new").status.code == Code.TOPIC_NOT_FOUND


async def test_a_slave_makes_no_topic(grpc: GrpcBroker) -> None:
    grpc.broker.config.store.broker_role = "SLAVE"
    assert route(grpc, "new").status.code == Code.TOPIC_NOT_FOUND
    assert grpc.broker.topics.find("new") is None


async def test_retry_topics_are_not_made(grpc: GrpcBroker) -> None:
    assert route(grpc, "%RETRY%g").status.code == Code.TOPIC_NOT_FOUND


def with_others(grpc: GrpcBroker, clock: Any, *, strict: bool = False) -> GrpcBroker:
    """The same broker beside a name server that knows others: broker-b elsewhere with a slave, broker-c here."""
    name_server = NameServer(NameServerConfig(), clock)
    table = name_server.routes
    for name, addresses in (
        ("broker-b", {0: "10.0.0.2:10911", 1: "10.0.0.3:10911"}),
        ("broker-c", {0: "127.0.0.1:20911"}),
        ("broker-d", {0: "host.example:10911"}),
    ):
        table.brokers[name] = BrokerData(cluster="c", broker_name=name, broker_addrs=addresses)
        table.topics.setdefault("far", {})[name] = QueueData(
            broker_name=name, read_queue_nums=1, write_queue_nums=1, perm=6
        )
    table.topics["here"] = {"broker-c": table.topics["far"]["broker-c"]}
    return GrpcBroker(grpc.broker, name_server, grpc_strict=strict)


def places(reply: Any) -> list[tuple[str, int, str]]:
    return [
        (queue.broker.name, queue.broker.id, queue.broker.endpoints.addresses[0].host)
        for queue in reply.message_queues
    ]


async def test_other_brokers_are_expected_at_the_same_port(grpc: GrpcBroker, clock: Any) -> None:
    cluster = with_others(grpc, clock)
    grpc.topic("far", queues=1)
    reply = route(cluster, "far")
    assert sorted(places(reply)) == [
        ("broker-a", 0, "127.0.0.1"),
        ("broker-b", 0, "10.0.0.2"),
        ("broker-b", 1, "10.0.0.3"),
        ("broker-d", 0, "host.example"),
    ]
    assert {queue.broker.endpoints.addresses[0].port for queue in reply.message_queues} == {8081}
    schemes = {queue.broker.name: queue.broker.endpoints.scheme for queue in reply.message_queues}
    assert schemes["broker-d"] == AddressScheme.DOMAIN_NAME


async def test_strict_route_has_the_other_brokers_of_this_machine(grpc: GrpcBroker, clock: Any) -> None:
    cluster = with_others(grpc, clock, strict=True)
    reply = route(cluster, "here")
    assert places(reply) == [("broker-c", 0, "127.0.0.1")]
    (queue,) = reply.message_queues
    assert list(queue.accept_message_types) == [MessageType.MESSAGE_TYPE_UNSPECIFIED]


async def test_topic_of_other_brokers_is_not_made_here(grpc: GrpcBroker, clock: Any) -> None:
    cluster = with_others(grpc, clock)
    assert sorted({name for name, _, _ in places(route(cluster, "far"))}) == ["broker-b", "broker-d"]
    assert grpc.broker.topics.find("far") is None


async def test_name_server_elsewhere_is_asked(grpc_maker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grpc = grpc_maker(namesrv_addr="10.0.0.9:9876")
    queue = QueueData(broker_name="broker-b", read_queue_nums=1, write_queue_nums=1, perm=6)
    group = BrokerData(cluster="c", broker_name="broker-b", broker_addrs={0: "10.0.0.2:10911"})
    asked: list[str] = []

    async def answer(request: GetRouteInfoByTopic) -> TopicRouteData:
        asked.append(request.topic)
        return TopicRouteData(queue_datas=[queue], broker_datas=[group])

    monkeypatch.setattr(grpc.broker.cluster.registration, "ask", answer)
    stream = grpc.begin(QueryRouteRequest(topic=Resource(name="far")))
    await turns()
    (reply,) = stream.replies
    assert places(reply) == [("broker-b", 0, "10.0.0.2")]
    assert asked == ["far"]


async def test_name_server_that_does_not_answer_hides_no_topic(grpc_maker: Any) -> None:
    grpc = grpc_maker(namesrv_addr="10.0.0.9:9876")
    grpc.topic("t", queues=1)
    stream = grpc.begin(QueryRouteRequest(topic=Resource(name="t")))
    await turns()
    (reply,) = stream.replies
    assert places(reply) == [("broker-a", 0, "127.0.0.1")]


async def test_a_long_namespace_is_refused(grpc: GrpcBroker) -> None:
    """It is repeated with every queue: a request of 1 MB for a topic of 1,000 queues had a reply of 1 GB."""
    grpc.topic("t", queues=100)
    asked = QueryRouteRequest(topic=Resource(resource_namespace="n" * 128, name="t"))
    assert grpc.refused(asked)[0] == Code.ILLEGAL_TOPIC
