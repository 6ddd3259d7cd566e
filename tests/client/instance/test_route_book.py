"""What an instance knows about brokers: the port for each request, and the error for an unknown broker."""

import pytest
from pocketmq.client import MessageQueue, RouteNotFound
from pocketmq.client.connections.name_servers import NameServers
from pocketmq.client.connections.pool import ConnectionPool
from pocketmq.client.connections.route import Route
from pocketmq.client.instance.route_book import RouteBook
from pocketmq.protocol.bodies.routes import BrokerData, QueueData, TopicRouteData

QUEUE = MessageQueue("T", "b", 0)
ROUTE = TopicRouteData(
    queue_datas=[QueueData(broker_name="b", read_queue_nums=1, write_queue_nums=1, perm=6)],
    broker_datas=[BrokerData(cluster="c", broker_name="b", broker_addrs={0: "m:10911", 1: "s:10921"})],
)


class OneRoute(NameServers):
    """Knows the topic T; counts the questions."""

    questions = 0

    async def find(self, topic: str) -> Route:
        self.questions += 1
        if topic != "T":
            raise RouteNotFound(topic)
        return Route(topic, ROUTE)


def book(*, vip_channel: bool) -> RouteBook:
    return RouteBook(OneRoute(ConnectionPool(), "127.0.0.1:1"), vip_channel=vip_channel)


@pytest.mark.parametrize(("vip_channel", "port"), [(False, 10911), (True, 10909)])
async def test_requests_go_to_the_vip_port_unless_they_are_for_the_main_port(
    vip_channel: bool, port: int
) -> None:
    routes = book(vip_channel=vip_channel)
    assert routes.master("b") is None
    assert await routes.find_master(QUEUE) == f"m:{port}"
    assert routes.master("b") == routes.known_master(QUEUE) == routes.member("b") == f"m:{port}"
    assert routes.master("b", main_port=True) == "m:10911"
    assert await routes.find_master(QUEUE, main_port=True) == "m:10911"
    assert await routes.find_member(QUEUE) == await routes.find_any_broker("T") == f"m:{port}"
    assert await routes.find_any_broker("T", main_port=True) == "m:10911"


async def test_pulls_go_to_the_main_port_of_the_suggested_broker() -> None:
    routes = book(vip_channel=True)
    assert await routes.find_reader(QUEUE, 1) == ("s:10921", True)
    assert await routes.find_reader(QUEUE, 0) == ("m:10911", False)


async def test_an_unknown_broker_is_refused_with_the_official_message_after_one_query() -> None:
    routes = book(vip_channel=False)
    stranger = MessageQueue("T", "gone", 0)
    for find in (routes.find_master, routes.find_member, lambda queue: routes.find_reader(queue, 0)):
        with pytest.raises(RouteNotFound, match=r"The broker\[gone\] not exist"):
            await find(stranger)
    with pytest.raises(RouteNotFound, match=r"The broker\[gone\] not exist"):
        routes.known_master(stranger)


async def test_a_route_is_requested_once_and_again_after_it_is_dropped() -> None:
    routes = book(vip_channel=False)
    assert routes.missing(["T", "U"]) == {"T", "U"}
    await routes.find_any_broker("T")
    await routes.find_any_broker("T")
    assert routes.name_servers.questions == 1  # type: ignore[attr-defined]
    assert routes.missing(["T", "U"]) == {"U"}
    routes.forget("T")
    await routes.find_any_broker("T")
    assert routes.name_servers.questions == 2  # type: ignore[attr-defined]


async def test_addresses_that_no_route_names_are_forgotten() -> None:
    routes = book(vip_channel=False)
    await routes.find_route("T")
    routes.brokers.keep({"old": {0: "o:1"}})
    routes.forget_offline_brokers()
    assert routes.brokers.all_addresses() == {"m:10911", "s:10921"}


class ReadOnly(OneRoute):
    """T exists, but no queue of it may be written; the template exists."""

    async def find(self, topic: str) -> Route:
        self.questions += 1
        perm = 4 if topic == "T" else 6
        queue = QueueData(broker_name="b", read_queue_nums=1, write_queue_nums=1, perm=perm)
        return Route(topic, TopicRouteData(queue_datas=[queue], broker_datas=ROUTE.broker_datas))


async def test_a_topic_that_may_not_be_written_is_not_sent_to_by_way_of_the_template() -> None:
    servers = ReadOnly(ConnectionPool(), "127.0.0.1:1")
    route = await RouteBook(servers, vip_channel=False).find_publish_route("T", "TBW102", 4)
    assert (route.topic, route.queues, servers.questions) == ("T", (), 1)
