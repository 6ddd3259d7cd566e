"""The members of a cluster: names, ports, start and stop, routes. Asked at the wire, without a client."""

import asyncio
import socket
import sys
from pathlib import Path

import pytest
from pocketmq.broker.errors import StartError
from pocketmq.client import Producer
from pocketmq.testing import NotRunningError, RocketMQCluster, TestingError

from cluster_routes import brokers_of
from frames_client import raw


def test_all_name_servers_know_all_brokers() -> None:
    with RocketMQCluster(name_servers=2, brokers=3, slaves=1, emulate="5") as cluster:
        assert cluster.namesrv_addr == ";".join(server.addr for server in cluster.name_servers)
        assert [broker.name for broker in cluster.brokers] == ["b0", "b0-1", "b1", "b1-1", "b2", "b2-1"]
        cluster.grow("orders", queues=2)
        for name_server in ("n0", "n1"):
            assert brokers_of(cluster, "orders", name_server) == {
                name: {"0": cluster.broker(name).addr, "1": cluster.broker(f"{name}-1").addr}
                for name in ("b0", "b1", "b2")
            }


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_broker_that_ends_leaves_the_routes_and_comes_back_on_its_port(way: str) -> None:
    with RocketMQCluster(brokers=2) as cluster:
        cluster.grow("orders")
        broker = cluster.broker("b0")
        before = broker.addr
        broker.stop() if way == "stop" else broker.kill()
        assert not broker.is_running
        assert list(brokers_of(cluster, "orders")) == ["b1"]
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", int(before.rpartition(":")[2])), timeout=1)
        broker.start()
        assert brokers_of(cluster, "orders")["b0"] == {"0": before}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux listens on a port that is bound already")
def test_nobody_else_gets_the_port_of_a_stopped_member() -> None:
    with RocketMQCluster(brokers=1) as cluster:
        members = cluster.broker("b0"), cluster.name_server("n0")
        for member in members:
            member.stop()
        for member in members:
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", int(member.addr.rpartition(":")[2])))
        for member in reversed(members):
            member.start()


def test_a_killed_broker_resets_its_connections_and_its_next_start_recovers() -> None:
    with RocketMQCluster(brokers=1) as cluster:
        broker = cluster.broker("b0")
        with raw(broker.addr) as client:
            assert client.ask(28).code == 0
            store = broker.node.broker.store
            broker.kill()
            with pytest.raises(OSError):
                client.ask(28)
        assert (store.config.root / "abort").exists()
        broker.start()
        report = cluster.call(lambda: broker.node.broker.store.recovery_report)
        assert report is not None
        assert not report.clean


def test_a_name_server_is_stopped_and_started_on_its_port() -> None:
    with RocketMQCluster(name_servers=2, brokers=2) as cluster:
        cluster.grow("orders")
        second = cluster.name_server("n1")
        second.stop()
        assert not second.is_running
        assert list(brokers_of(cluster, "orders", "n0")) == ["b0", "b1"]
        with pytest.raises(OSError):
            brokers_of(cluster, "orders", "n1")
        second.start()
        assert list(brokers_of(cluster, "orders", "n1")) == ["b0", "b1"]


def test_a_partition_takes_brokers_out_of_the_routes_of_its_other_side() -> None:
    with RocketMQCluster(name_servers=2, brokers=2, slaves=1) as cluster:
        cluster.grow("orders")
        cluster.partition(["b0"], ["b1", "n0", "b0-1"])
        assert {name: list(ids) for name, ids in brokers_of(cluster, "orders", "n0").items()} == {
            "b0": ["1"],
            "b1": ["0", "1"],
        }
        assert list(brokers_of(cluster, "orders", "n1")["b0"]) == ["0", "1"]
        cluster.broker("b0").stop()
        cluster.broker("b0").start()
        assert list(brokers_of(cluster, "orders", "n0")["b0"]) == ["1"]
        cluster.heal()
        assert list(brokers_of(cluster, "orders", "n0")["b0"]) == ["0", "1"]


async def test_a_slave_that_is_cut_off_copies_nothing_until_the_partition_ends() -> None:
    with RocketMQCluster(brokers=1, slaves=1) as cluster:
        cluster.grow("orders", queues=1)
        cluster.wait_replicated()
        cluster.partition(["b0"], ["b0-1"])
        async with Producer("p", namesrv_addr=cluster.namesrv_addr) as producer:
            await producer.send("orders", b"late")
        with pytest.raises(AssertionError, match="slave b0-1 has 0 bytes of the log of b0"):
            cluster.wait_replicated(timeout_seconds=0.05)
        cluster.heal()
        cluster.wait_replicated()
        assert cluster.call(lambda: cluster.broker("b0-1").node.broker.store.max_offset("orders", 0)) == 1


def test_an_added_broker_has_the_next_name() -> None:
    with RocketMQCluster(brokers=1, slaves=1) as cluster:
        added = cluster.add_broker()
        assert added.name == "b1"
        assert cluster.broker("b1-1").is_running
        cluster.grow("orders")
        assert brokers_of(cluster, "orders")["b1"]["0"] == added.addr


def test_hidden_brokers_and_name_servers_that_disagree() -> None:
    with RocketMQCluster(name_servers=2, brokers=2) as cluster:
        cluster.grow("orders")
        cluster.broker("b0").hide()
        assert list(brokers_of(cluster, "orders")) == ["b1"]
        cluster.broker("b0").show()
        assert list(brokers_of(cluster, "orders")) == ["b0", "b1"]
        rule = cluster.faults.hide_broker("b1")
        assert list(brokers_of(cluster, "orders")) == ["b0"]
        rule.remove()
        cluster.faults.name_servers_disagree("orders", {"n0": ["b0"], "n1": ["b1"]})
        assert list(brokers_of(cluster, "orders", "n0")) == ["b0"]
        assert list(brokers_of(cluster, "orders", "n1")) == ["b1"]
        assert cluster.requests.count(code="GET_ROUTEINFO_BY_TOPIC") == 5


def test_routes_may_name_another_address_than_the_bound_one() -> None:
    with RocketMQCluster(brokers=1, slaves=1, bindAddress="0.0.0.0", brokerIP1="127.0.0.2") as cluster:
        cluster.grow("orders")
        cluster.wait_replicated()
        broker = cluster.broker("b0")
        port = broker.addr.rpartition(":")[2]
        assert (broker.addr, cluster.namesrv_addr.rpartition(":")[0]) == (f"127.0.0.1:{port}", "127.0.0.1")
        assert brokers_of(cluster, "orders")["b0"]["0"] == f"127.0.0.2:{port}"
        broker.kill()
        broker.start()
        assert brokers_of(cluster, "orders")["b0"]["0"] == f"127.0.0.2:{port}"


def test_wrong_names_and_numbers_say_what_is_allowed() -> None:
    with pytest.raises(ValueError, match="brokers must be a whole number from 1 to 32, got 0"):
        RocketMQCluster(brokers=0)
    with pytest.raises(StartError, match="a cluster chooses brokerName"):
        RocketMQCluster(brokerName="x")
    with pytest.raises(NotRunningError):
        RocketMQCluster().broker("b0")
    with RocketMQCluster(brokers=2, slaves=1) as cluster:
        with pytest.raises(ValueError, match="must be one of b0, b0-1, b1, b1-1, got 'b2'"):
            cluster.broker("b2")
        with pytest.raises(ValueError, match="must be one of n0, got 'b0'"):
            cluster.name_server("b0")
        with pytest.raises(ValueError, match="must be one of b0, b0-1, b1, b1-1, n0, got 'x'"):
            cluster.partition(["b0"], ["x"])
        with pytest.raises(ValueError, match="b0 must be on one side"):
            cluster.partition(["b0"], ["b0"])
        with pytest.raises(ValueError, match="seconds must be a number"):
            cluster.broker("b0").slow(-1)
        with pytest.raises(TestingError, match="hide that one"):
            cluster.broker("b0-1").hide()
        with pytest.raises(StartError, match="broker b0 is already running"):
            cluster.broker("b0").start()
        cluster.grow("orders", queues=4)
        with pytest.raises(ValueError, match="queues must be at least 4"):
            cluster.grow("orders", queues=3)
        with pytest.raises(ValueError):
            cluster.grow("no name", queues=3)


def test_a_member_that_cannot_start_leaves_nothing_behind(temporary: Path) -> None:
    with pytest.raises(StartError, match="noSuchKey"):
        RocketMQCluster(noSuchKey=1).start()


async def test_two_clusters_at_once_and_nothing_left_of_either(temporary: Path) -> None:
    async with RocketMQCluster(brokers=2) as one, RocketMQCluster(brokers=1, slaves=1) as other:
        await asyncio.to_thread(one.grow, "orders")
        assert brokers_of(other, "orders") == {}
        assert len(list(temporary.iterdir())) == 2
        with raw(one.broker("b0").addr) as client:  # connected while it stops
            assert client.ask(28).code == 0
            one.stop()
            other.stop()


def test_the_clusters_own_thread_cannot_wait_for_itself() -> None:
    with RocketMQCluster(brokers=1) as cluster:
        for method in (cluster.stop, cluster.broker("b0").kill):
            with pytest.raises(NotRunningError, match="own thread"):
                cluster.call(method)
        assert cluster.broker("b0").is_running


def test_a_failure_of_one_member_ends_the_others_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> None:
        await stop()
        raise RuntimeError("no end")

    cluster = RocketMQCluster(brokers=2).start()
    other, name_server = cluster.broker("b1"), cluster.name_server("n0")
    part = cluster.broker("b0").node.broker.cluster
    stop = part.stop
    monkeypatch.setattr(part, "stop", fail)
    with pytest.raises(RuntimeError, match="no end"):
        cluster.stop()
    assert not other.is_running
    assert not name_server.is_running
    with pytest.raises(NotRunningError):
        cluster.namesrv_addr  # noqa: B018


async def test_of_two_threads_that_start_a_broker_one_is_told_that_it_runs() -> None:
    async with RocketMQCluster(brokers=1) as cluster:
        broker = cluster.broker("b0")
        await asyncio.to_thread(broker.stop)
        ends = await asyncio.gather(
            *(asyncio.to_thread(broker.start) for _ in range(3)), return_exceptions=True
        )
        assert sorted(str(end) for end in ends) == ["None", *["broker b0 is already running"] * 2]
        assert broker.is_running


def test_a_stopped_cluster_can_be_started_again() -> None:
    cluster = RocketMQCluster(brokers=1)
    for _ in range(2):
        with cluster:
            cluster.grow("orders")
            assert list(brokers_of(cluster, "orders")) == ["b0"]
    cluster.stop()


def test_a_thread_that_gets_no_event_loop_is_an_error_and_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the process has no descriptor left."""

    def no_loop() -> asyncio.AbstractEventLoop:
        raise OSError("too many open files")

    monkeypatch.setattr("pocketmq.testing.server.loop_thread.loop_factory", lambda: no_loop)
    cluster = RocketMQCluster(brokers=1)
    with pytest.raises(OSError, match="too many open files"):
        cluster.start()
    monkeypatch.undo()
    with cluster:
        assert list(brokers_of(cluster, "orders")) == []
