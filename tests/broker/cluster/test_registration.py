"""The broker at its name servers: over real sockets, with name servers that start, stop and refuse.

Waiting is for something to be true, with a limit; nothing here depends on how long it took.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pocketmq.broker.cluster import name_server_link, registration
from pocketmq.broker.errors import PeerError
from pocketmq.broker.name_server.name_server import NameServer
from pocketmq.broker.name_server.topic_routes import find_route
from pocketmq.broker.network.connection import Connection
from pocketmq.broker.network.dispatch import Call
from pocketmq.broker.network.server import Server
from pocketmq.protocol.bodies.routes import QueueData
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.languages import V4_9_7, V5_5_0
from pocketmq.protocol.requests.name_server import GetBrokerClusterInfo, RegisterBroker, RegisterBrokerReply
from pocketmq.store import VirtualClock

from broker_fakes import close_broker
from broker_fakes import make_broker as make_fake_broker
from name_server_fakes import RunningNameServer
from waiting import until


class RunningBroker:
    """A broker that registers, with a server for its connections; it is not open for clients."""

    def __init__(self, folder: Path, *name_servers: RunningNameServer, **settings: Any) -> None:
        addresses = ";".join(one.address for one in name_servers)
        emulate = settings.pop("emulate", 5)
        self.server = Server("broker", version=V5_5_0 if emulate == 5 else V4_9_7)
        self.broker = make_fake_broker(
            folder,
            VirtualClock(),
            emulate=emulate,
            connect=self.server.connect,
            **{"namesrv_addr": addresses, **settings},
        )
        self.registration = self.broker.cluster.registration

    def create(self, name: str, queues: int = 4) -> None:
        self.broker.topics.update(
            TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)
        )

    async def stop(self) -> None:
        await self.registration.stop()
        await self.server.close()
        close_broker(self.broker)


class Cluster:
    """A name server of each line, and brokers that register at them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.servers = self.five, self.four = RunningNameServer(5), RunningNameServer(4)
        self.brokers: list[RunningBroker] = []

    def make(self, *name_servers: RunningNameServer, **settings: Any) -> RunningBroker:
        """A broker that registers at these name servers, or at both, once it is started."""
        folder = self._folder / str(len(self.brokers))
        self.brokers.append(RunningBroker(folder, *(name_servers or self.servers), **settings))
        return self.brokers[-1]

    async def start(self, *name_servers: RunningNameServer, **settings: Any) -> RunningBroker:
        running = self.make(*name_servers, **settings)
        await running.registration.start()
        return running


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    monkeypatch.setattr(registration, "WATCH_SECONDS", 0.02)
    monkeypatch.setattr(name_server_link, "FIRST_RETRY_SECONDS", 0.01)
    cluster = Cluster(tmp_path)
    for server in cluster.servers:
        await server.start()
    yield cluster
    for one in cluster.brokers:
        await one.stop()
    for server in cluster.servers:
        await server.stop()


def queue_at(server: RunningNameServer, topic: str) -> QueueData | None:
    """What a name server knows of a topic on broker-a."""
    return server.state.routes.topics.get(topic, {}).get("broker-a")


def count_registrations(server: RunningNameServer, monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The topics of every registration that the name servers take from now on."""
    seen: list[set[str]] = []
    table = server.state.routes
    take = table.register

    def counting(request: RegisterBroker, wrapper: Any, filters: Any, connection: Any) -> Any:
        seen.append(set(wrapper.topic_config_table))
        return take(request, wrapper, filters, connection)

    monkeypatch.setattr(table, "register", counting)
    return seen


@pytest.mark.parametrize("emulate", [5, 4])
async def test_broker_stands_in_every_route_table_when_start_returns(cluster: Cluster, emulate: int) -> None:
    running = await cluster.start(emulate=emulate)
    for server in cluster.servers:
        route = find_route(server.state.routes, "TBW102", with_acting_master=False)
        assert route is not None
        assert route.broker_datas[0].broker_addrs == {0: "127.0.0.1:10911"}
        assert set(server.state.routes.topics) == set(running.broker.topics.topics)
        live = next(iter(server.state.routes.live.values()))
        assert live.ha_server_addr == "127.0.0.1:10912"
        assert live.data_version == running.broker.topics.data_version


async def test_changed_topics_are_told_at_once_and_together(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await cluster.start()
    seen = count_registrations(cluster.five, monkeypatch)
    for name in ("one", "two", "three"):
        running.create(name)
    await running.registration.wait_until_sent()
    assert seen == [{"one", "two", "three"}]
    running.create("two", queues=9)
    await running.registration.wait_until_sent()
    assert seen[1:] == [{"two"}]
    for server in cluster.servers:
        queue = queue_at(server, "two")
        assert queue is not None
        assert queue.write_queue_nums == 9


async def test_broker_is_back_in_the_table_of_a_name_server_that_was_restarted(cluster: Cluster) -> None:
    running = await cluster.start()
    restarted, other = cluster.servers
    await restarted.stop()
    running.create("meanwhile")
    await running.registration.wait_until_sent()
    assert queue_at(other, "meanwhile") is not None
    await restarted.start()
    await until(lambda: queue_at(restarted, "meanwhile"))
    assert queue_at(restarted, "TBW102") is not None


async def test_name_server_that_is_down_holds_up_neither_the_start_nor_the_others(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pocketmq.cluster")
    down, up = cluster.servers
    await down.stop()
    running = await cluster.start(down, up)
    assert queue_at(up, "TBW102") is not None
    await asyncio.sleep(0.2)  # several tries, of which only the first is worth a line
    assert len([one for one in caplog.records if "does not answer" in one.message]) == 1
    await down.start()
    await until(lambda: queue_at(down, "TBW102"))
    # The line is written once the answer to the registration has arrived: after the name server has the route.
    await until(lambda: [one for one in caplog.records if "is back" in one.message])
    await running.registration.wait_until_sent()
    assert len([one for one in caplog.records if "is back" in one.message]) == 1


async def test_topics_made_while_a_name_server_is_slow_to_accept_are_sent_to_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were sent to the others and forgotten; a 4.x name server then had the data version, and not the topics."""
    quick, slow = cluster.servers
    running = cluster.make()
    accepts, connect = asyncio.Event(), running.registration._connect

    async def connect_late(address: str) -> Connection:
        if address == slow.address:
            await accepts.wait()
        return await connect(address)

    monkeypatch.setattr(running.registration, "_connect", connect_late)
    starting = asyncio.create_task(running.registration.start())
    await until(lambda: queue_at(quick, "TBW102"))
    for name in ("one", "two"):
        running.create(name)
        await until(lambda name=name: queue_at(quick, name))
    accepts.set()
    await starting
    running.create("three")
    await until(lambda: queue_at(slow, "three"))
    assert queue_at(slow, "one") is not None
    assert queue_at(slow, "two") is not None


async def test_stop_leaves_the_route_tables(cluster: Cluster) -> None:
    running = await cluster.start()
    await running.registration.stop()
    for server in cluster.servers:
        assert server.state.routes.brokers == {}
        assert server.state.routes.topics == {}


async def test_dropped_broker_tells_everything_when_its_change_is_refused(cluster: Cluster) -> None:
    server = cluster.five
    running = await cluster.start(server)
    server.state.routes.unregister("DefaultCluster", running.broker.identity.address, "broker-a", 0)
    running.create("alone")
    await running.registration.wait_until_sent()
    assert queue_at(server, "alone") is not None
    assert queue_at(server, "TBW102") is not None


async def test_unforced_registration_asks_first_and_keeps_quiet_where_nothing_changed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await cluster.start()
    seen = count_registrations(cluster.five, monkeypatch)
    await running.registration.register_all(force=False)
    assert seen == []
    cluster.four.state.routes.unregister("DefaultCluster", running.broker.identity.address, "broker-a", 0)
    await running.registration.register_all(force=False)
    assert len(seen) == 1
    assert queue_at(cluster.four, "TBW102") is not None


@pytest.mark.parametrize(
    ("emulate", "expected"), [(5, {"TBW102": 5, "DefaultCluster": 5}), (4, {"TBW102": 4})]
)
async def test_permission_of_the_broker_shows_in_its_routes(
    cluster: Cluster, emulate: int, expected: dict[str, int]
) -> None:
    running = await cluster.start(emulate=emulate)
    running.broker.config.broker_permission = 4 if emulate == 4 else 5
    await running.registration.register_permission()
    for server in cluster.servers:
        shown = {name: queue_at(server, name) for name in expected}
        assert {name: queue and queue.perm for name, queue in shown.items()} == expected
    assert running.broker.topics.topics["TBW102"].perm == 7


async def test_topics_ordered_by_a_name_server_take_the_flag(cluster: Cluster) -> None:
    cluster.five.state.kv.put("ORDER_TOPIC_CONFIG", "BenchmarkTest", "broker-a:4")
    running = await cluster.start(cluster.five)
    assert running.broker.topics.is_order_topic("BenchmarkTest")
    assert not running.broker.topics.is_order_topic("TBW102")


async def test_a_name_server_that_does_not_know_the_master_does_not_make_a_slave_forget_it(
    cluster: Cluster,
) -> None:
    await cluster.start(cluster.five)
    slave = cluster.make(broker_id=1, listen_port=10921)
    for _ in range(3):  # in whatever order they answer
        await slave.registration.register_all()
        assert slave.registration.master_address == "127.0.0.1:10911"
    slave.registration._apply_answer(RegisterBrokerReply(), None)
    assert slave.registration.master_address == "127.0.0.1:10911"


async def test_a_large_table_is_sent_again_only_to_a_name_server_that_lacks_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "LARGE_TABLE", 1)
    running = await cluster.start(force_register=True)
    seen = count_registrations(cluster.five, monkeypatch)
    running.registration._register_periodically()
    assert running.registration._round is not None
    await running.registration._round
    assert seen == []
    running.create("one")
    await running.registration.wait_until_sent()
    assert seen == [{"one"}]


async def test_changes_are_remembered_until_every_name_server_has_them(cluster: Cluster) -> None:
    running = await cluster.start()
    for number in range(9):
        running.create(f"t{number}")
        running.broker.topics.delete(f"t{number}")
    await running.registration.wait_until_sent()
    running.create("last")
    await running.registration.wait_until_sent()
    running.broker.topics.delete("last")
    assert len(running.registration._changes) <= 2


async def test_a_table_too_large_for_a_frame_goes_in_parts(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "MAX_TOPICS", 5)
    running = cluster.make(cluster.five)
    seen = count_registrations(cluster.five, monkeypatch)
    await running.registration.start()
    assert set.union(*seen) == set(running.broker.topics.topics)
    assert all(2 <= len(part) <= 6 for part in seen)
    assert sum(map(len, seen)) == len(running.broker.topics.topics)
    assert set(cluster.five.state.routes.topics) == set(running.broker.topics.topics)


@pytest.mark.parametrize("compatible", [True, False])
async def test_broker_that_may_act_as_master_beats_every_second(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, compatible: bool
) -> None:
    monkeypatch.setattr(registration, "FIRST_HEARTBEAT_SECONDS", 0.01)
    await cluster.start(
        cluster.five,
        enable_slave_acting_master=True,
        compatible_with_old_name_srv=compatible,
        broker_not_active_timeout_millis=10_000,
    )
    live = next(iter(cluster.five.state.routes.live.values()))
    assert live.timeout_ms == 10_000
    cluster.five.clock.advance(9_000)
    await until(lambda: live.last_update_ms == 9_000)


async def test_changed_address_list_is_followed(cluster: Cluster) -> None:
    first, second = cluster.servers
    running = await cluster.start(first)
    running.broker.config.namesrv_addr = f" {second.address} ; nonsense"
    await running.registration.register_all()
    assert queue_at(second, "TBW102") is not None
    await until(lambda: not first.state.routes.brokers)


async def test_name_server_that_is_silent_does_not_hold_up_changes_for_the_others(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent, quick = cluster.servers
    running = await cluster.start(silent, quick)
    held = asyncio.Event()

    async def never(state: NameServer, request: RegisterBroker, call: Call) -> None:
        if state is silent.state:
            await held.wait()

    own_table = dict(silent.server.handlers.table)
    own_table[RegisterBroker.code] = replace(own_table[RegisterBroker.code], function=never)
    for connection in silent.server.connections:
        monkeypatch.setattr(connection, "_handlers", own_table)
    running.create("one")
    await until(lambda: queue_at(quick, "one"))
    running.create("two")
    await until(lambda: queue_at(quick, "two"))
    held.set()


async def test_a_name_server_that_never_accepts_is_logged_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def never(address: str) -> Connection:
        await asyncio.Event().wait()
        raise AssertionError(address)

    link = name_server_link.NameServerLink(never, "ns:9876")
    with pytest.raises(PeerError, match=r"^name server ns:9876: timed out$"):
        await link.call(GetBrokerClusterInfo(), timeout_seconds=0.01)
    assert "name server ns:9876 does not answer: timed out; trying again" in caplog.text
