"""The route table by itself: which brokers it removes and when, on a virtual clock.

What it answers is compared with the official programs in `test_name_server.py`; here are the cases in which time
passes and connections end.
"""

from typing import cast

import pytest
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.errors import Refusal
from pocketmq.broker.name_server import route_table
from pocketmq.broker.name_server.route_table import RouteTable, without_write
from pocketmq.broker.name_server.topic_routes import find_route
from pocketmq.broker.network.dispatch import Peer
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.registration import TopicConfigAndMappingSerializeWrapper
from pocketmq.protocol.bodies.routes import QueueData, TopicQueueMappingInfo
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.name_server import RegisterBroker, RegisterBrokerReply
from pocketmq.store import VirtualClock

Notice = tuple[dict[int, str], str | None, str | None]


class Table:
    """A route table with its clock and the notices it gave."""

    def __init__(self, line: int = 5, **settings: bool) -> None:
        self.clock = VirtualClock()
        self.notices: list[Notice] = []
        config = NameServerConfig(**settings)  # type: ignore[arg-type]
        self.routes = RouteTable(
            config,
            self.clock,
            lambda addresses, gone, ha: self.notices.append((dict(addresses), gone, ha)),
            is_5=line == 5,
        )

    def register(
        self,
        name: str = "a",
        address: str = "10.0.0.1:1",
        broker_id: int = 0,
        *topics: TopicConfig,
        counter: int = 1,
        connection: Peer | None = None,
        timeout_ms: int | None = None,
        acts: bool | None = None,
        mappings: dict[str, TopicQueueMappingInfo] | None = None,
    ) -> RegisterBrokerReply:
        request = RegisterBroker(
            broker_name=name, broker_addr=address, cluster_name="c", ha_server_addr=f"{address}-ha",
            broker_id=broker_id, heartbeat_timeout_millis=timeout_ms, enable_acting_master=acts,
        )  # fmt: skip
        named = topics or (topic("T"), topic("U"))
        wrapper = TopicConfigAndMappingSerializeWrapper(
            topic_config_table={one.name: one for one in named},
            data_version=DataVersion(counter=counter),
            topic_queue_mapping_info_map=mappings or {},
        )
        return self.routes.register(request, wrapper, [], connection)

    def has_route(self, name: str = "T") -> bool:
        return find_route(self.routes, name, with_acting_master=False) is not None


def topic(name: str, perm: int = 6, queues: int = 4) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm)


def a_connection() -> Peer:
    return cast(Peer, object())


@pytest.fixture(params=[5, 4], ids=["5.x", "4.x"])
def table(request: pytest.FixtureRequest) -> Table:
    """Of both lines."""
    return Table(request.param)


def test_broker_without_heartbeat_is_dropped_after_two_minutes_and_not_before(table: Table) -> None:
    connection = a_connection()
    table.register(connection=connection)
    table.clock.advance(120_000)
    assert table.routes.expire() == []
    assert table.has_route()
    table.clock.advance(1)
    assert table.routes.expire() == [connection]
    assert not table.has_route()
    assert table.routes.brokers == {}
    assert table.routes.clusters == {}
    assert table.routes.live == {}


@pytest.mark.parametrize("line", [5, 4])
def test_only_the_5_line_lets_a_broker_name_its_own_time_of_silence(line: int) -> None:
    table = Table(line)
    table.register(timeout_ms=10_000)
    table.clock.advance(10_001)
    table.routes.expire()
    assert table.has_route() is (line == 4)


def test_heartbeat_keeps_a_broker_alive(table: Table) -> None:
    table.register()
    table.clock.advance(119_000)
    table.routes.touch("c", "10.0.0.1:1")
    table.clock.advance(119_000)
    table.routes.expire()
    assert table.has_route()


def test_correction_of_the_calendar_drops_no_broker() -> None:
    table = Table()
    table.register()
    table.clock.set_now_ms(table.clock.now_ms() + 86_400_000)
    table.routes.expire()
    assert table.has_route()


def test_closed_connection_drops_all_its_brokers_at_once(table: Table) -> None:
    shared = a_connection()
    table.register("a", "10.0.0.1:1", connection=shared)
    table.register("b", "10.0.0.2:1", connection=shared)
    table.routes.connection_closed(a_connection())
    assert table.has_route()
    table.routes.connection_closed(shared)
    assert not table.has_route()
    assert table.routes.brokers == {}


def test_end_of_the_former_connection_does_not_drop_a_broker_that_came_back(table: Table) -> None:
    former = a_connection()
    table.register(connection=former)
    table.register(connection=a_connection())
    table.routes.connection_closed(former)
    assert table.has_route()


def test_slave_hears_of_its_master_only_while_that_lives(table: Table) -> None:
    table.register()
    reply = table.register("a", "10.0.0.2:1", 1)
    assert reply == RegisterBrokerReply(ha_server_addr="10.0.0.1:1-ha", master_addr="10.0.0.1:1")
    table.routes.unregister("c", "10.0.0.1:1", "a", 0)
    assert table.register("a", "10.0.0.2:1", 1) == RegisterBrokerReply()


def test_permissions_of_many_topics_change_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that is deleted meanwhile stays away, and is not counted."""
    monkeypatch.setattr("pocketmq.broker.time.slices.SLICE_SECONDS", -1)
    table = Table()
    table.register("a", "10.0.0.1:1", 0, topic("A"), topic("B"), topic("C"))
    work = table.routes.change_permissions("a", without_write)
    work.send(None)
    assert [table.routes.topics[name]["a"].perm for name in "ABC"] == [4, 6, 6]
    table.routes.delete_topic("C", "c")
    work.send(None)
    work.send(None)
    with pytest.raises(StopIteration) as ended:
        work.send(None)
    assert ended.value.value == 2
    assert [name for name in "ABC" if name in table.routes.topics] == ["A", "B"]


def test_smallest_broker_id_is_notified_only_if_the_setting_says_so() -> None:
    quiet, told = Table(), Table(notify_min_broker_id_changed=True)
    for table in (quiet, told):
        table.register("a", "10.0.0.2:1", 2, acts=True)
        table.register("a", "10.0.0.1:1", 1, acts=True)
        table.routes.unregister("c", "10.0.0.1:1", "a", 1)
    assert quiet.notices == []
    assert told.notices == [
        ({2: "10.0.0.2:1", 1: "10.0.0.1:1"}, None, "10.0.0.1:1-ha"),
        ({2: "10.0.0.2:1"}, "10.0.0.1:1", None),
    ]


def test_registrations_beyond_the_room_of_the_table_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_table, "MAX_BROKERS", 2)
    monkeypatch.setattr(route_table, "MAX_ROUTES", 6)
    table = Table()
    table.register("a", "10.0.0.1:1")
    table.register("b", "10.0.0.2:1")
    with pytest.raises(Refusal, match="full"):
        table.register("c", "10.0.0.3:1")
    table.register("a", "10.0.0.1:1", 0, *map(topic, "TUVW"), counter=2)
    table.routes.unregister("c", "10.0.0.2:1", "b", 0)
    with pytest.raises(Refusal, match="full"):
        table.register("b", "10.0.0.2:1", 0, *map(topic, "TUV"))
    table.routes.delete_topic("W", None)
    table.register("b", "10.0.0.2:1", 0, *map(topic, "TUV"))


def test_queue_mappings_leave_with_their_broker() -> None:
    table = Table()
    names = ("T", "unknown")
    table.register(mappings={name: TopicQueueMappingInfo(topic=name, bname="a") for name in names})
    assert table.routes.queue_mappings.keys() == {"T"}
    table.routes.unregister("c", "10.0.0.1:1", "a", 0)
    assert not table.routes.queue_mappings


def test_a_refused_topic_is_said_once_a_broker(caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    for number in range(5):
        table.routes.register_topic(f"T{number}", [QueueData(broker_name="nobody")])
    assert len(caplog.records) == 1
