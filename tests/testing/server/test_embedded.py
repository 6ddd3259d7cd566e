"""The embedded server: which settings it accepts, and that it leaves nothing behind.

Real servers on free ports of the loopback interface; temporary folders are created where a test can see them.
"""

import asyncio
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from pocketmq.broker.errors import Refusal, StartError
from pocketmq.protocol.requests.admin import UpdateBrokerConfig
from pocketmq.protocol.requests.offset import GetMaxOffset
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store.clock import VirtualClock
from pocketmq.store.errors import StoreError
from pocketmq.store.retention import SystemDisk
from pocketmq.testing import EmbeddedServer, LoadError, NotRunningError, RocketMQ, RocketMQCluster
from pocketmq.testing.server import settings

from ports import fixed_port
from processes import python

T = TypeVar("T")


def connects(address: str) -> bool:
    host, _, port = address.partition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        return False
    return True


# -- start and stop


def test_both_ports_serve_and_the_route_is_known_when_start_returns(server: EmbeddedServer) -> None:
    assert connects(server.namesrv_addr)
    assert connects(server.broker_addr)
    name_server = server.node.name_server
    assert name_server is not None
    assert list(server.call(lambda: dict(name_server.routes.brokers))) == ["broker-a"]


def test_stop_leaves_no_file_thread_or_port(temporary: Path) -> None:
    server = EmbeddedServer().start()
    address, broker = server.namesrv_addr, server.broker_addr
    assert len(list(temporary.iterdir())) == 1
    server.stop()
    assert not connects(address)
    assert not connects(broker)
    server.stop()  # a second time does nothing


def test_stopped_server_starts_again_empty(temporary: Path) -> None:
    server = EmbeddedServer()
    with server:
        topic = RocketMQ(server).topic("orders")
        RocketMQ(server).send(topic, "one")
    with server:
        assert RocketMQ(server).messages(topic) == []


def test_kept_store_is_opened_again(tmp_path: Path) -> None:
    server = EmbeddedServer(store=tmp_path / "store")
    with server:
        RocketMQ(server).send(RocketMQ(server).topic("orders"), "one")
    assert (tmp_path / "store" / "commitlog" / f"{0:020d}").stat().st_size == 1 << 30, "as official brokers"
    with server:
        assert [message.text for message in RocketMQ(server).messages("orders")] == ["one"]
        assert RocketMQ(server).lag("orders", "nobody") == 1


def test_temporary_store_is_in_memory_if_it_has_room(
    monkeypatch: pytest.MonkeyPatch, temporary: Path, tmp_path: Path
) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr(settings, "IN_MEMORY", memory)
    with EmbeddedServer():
        assert len(list(temporary.iterdir())) == 1, "the environment names a place"
    monkeypatch.delenv("TMPDIR")
    with EmbeddedServer():
        assert len(list(memory.iterdir())) == 1
    assert list(memory.iterdir()) == []
    monkeypatch.setattr(settings, "IN_MEMORY_BYTES", 1 << 60)
    with EmbeddedServer():
        assert list(memory.iterdir()) == []


def test_standard_event_loop_serves_if_uvloop_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with EmbeddedServer() as server:
        assert server.call(lambda: type(asyncio.get_running_loop()).__module__).startswith("asyncio.")
        RocketMQ(server).send("orders", "one")
        assert len(RocketMQ(server).messages("orders")) == 1


def run_script(script: str, *words: str) -> None:
    ended = python("-c", script, *words, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_server_that_was_not_stopped_leaves_nothing_when_its_process_ends(temporary: Path) -> None:
    run_script(
        "from pocketmq.testing import EmbeddedServer, RocketMQ\n"
        "server = EmbeddedServer().start()\n"
        "RocketMQ(server).send('orders', 'one')\n"
    )


def test_what_changes_while_the_process_ends_is_kept(tmp_path: Path) -> None:
    """Python ends the threads of executors first: the file of the topics is not written by its own thread then."""
    run_script(
        "import atexit, sys, time\n"
        "from pocketmq.broker.state.table_saver import SAVE_DELAY_SECONDS\n"
        "from pocketmq.testing import EmbeddedServer, RocketMQ\n"
        "server = EmbeddedServer(store=sys.argv[1]).start()\n"
        "atexit.register(time.sleep, 5 * SAVE_DELAY_SECONDS)\n"
        "atexit.register(RocketMQ(server).topic, 'late')\n",
        str(tmp_path / "store"),
    )
    assert "late" in (tmp_path / "store" / "config" / "topics.json").read_text(encoding="utf-8")


# -- async with


async def test_callers_loop_is_not_blocked_while_the_server_starts_and_stops() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    async with EmbeddedServer() as server:
        _, writer = await asyncio.open_connection(*server.namesrv_addr.split(":"))
        writer.close()
        during_start = turns
    counting.cancel()
    assert 1 < during_start < turns


async def test_cancelled_start_leaves_nothing(temporary: Path) -> None:
    async def enter() -> None:
        async with EmbeddedServer():
            pytest.fail("the start was cancelled")

    entering = asyncio.create_task(enter())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering


# -- errors of a start: raised in the caller, and nothing remains


def test_used_port_is_raised_in_the_caller(temporary: Path) -> None:
    port = fixed_port()
    with socket.create_server(("127.0.0.1", port)):
        server = EmbeddedServer(listenPort=port)
        with pytest.raises(StartError, match=rf"cannot listen on 127\.0\.0\.1:{port} \(broker\)"):
            server.start()
        with pytest.raises(NotRunningError):
            _ = server.namesrv_addr
        assert list(temporary.iterdir()) == []
    with server:
        assert server.broker_addr == f"127.0.0.1:{port}", "the same server starts when the port is free"


def test_store_in_use_is_raised_in_the_caller(tmp_path: Path) -> None:
    with EmbeddedServer(store=tmp_path), pytest.raises(StoreError, match="already open"):
        EmbeddedServer(store=tmp_path).start()


def test_started_server_refuses_a_second_start_and_keeps_running(server: EmbeddedServer) -> None:
    with pytest.raises(StartError, match="already running"):
        server.start()
    assert connects(server.broker_addr)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"autoCreateTopicEnable": 1}, "autoCreateTopicEnable must be true or false, got '1'"),
        ({"storePathRootDir": "x"}, "storePathRootDir must be given as the argument store"),
    ],
)
def test_bad_setting_is_one_line(temporary: Path, settings: dict[str, str | int], complaint: str) -> None:
    with pytest.raises(StartError) as raised:
        EmbeddedServer(settings).start()
    assert str(raised.value) == f"settings: {complaint}"


# -- settings


def test_keywords_are_keys_of_broker_conf() -> None:
    with EmbeddedServer(emulate="4.9", autoCreateTopicEnable=False, clusterTopicEnable=False) as server:
        assert not server.broker.config.is_5
        with pytest.raises(Refusal) as refused:
            RocketMQ(server).send("orders", "one")
        assert refused.value.code == ResponseCode.TOPIC_NOT_EXIST


def test_key_of_the_name_server_reaches_it() -> None:
    with EmbeddedServer(orderMessageEnable=True) as server:
        assert server.node.name_server is not None
        assert server.node.name_server.config.order_message_enable


def test_file_is_read_keywords_override_it_and_no_file_is_written(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    text = "brokerName=from-file\ndefaultTopicQueueNums=3\norderMessageEnable=true\n"
    conf.write_text(text)
    with EmbeddedServer(conf=conf, brokerName="from-keyword") as server:
        config = server.broker.config
        assert (config.broker_name, config.default_topic_queue_nums) == ("from-keyword", 3)
        assert server.node.name_server is not None
        assert server.node.name_server.config.order_message_enable
        server.request(UpdateBrokerConfig(), b"maxMessageSize=1000\n")
        assert config.store.max_message_size == 1000
    assert conf.read_text() == text
    assert list(tmp_path.iterdir()) == [conf]


def test_message_of_the_official_maximum_fits_a_temporary_store(server: EmbeddedServer) -> None:
    # The body limit counts the body alone; properties come on top of it.
    body = b"x" * 4_194_304
    RocketMQ(server).send("large", body, properties={"p": "y" * 30_000})
    assert RocketMQ(server).messages("large")[0].body == body


def test_time_comes_from_the_clock_given() -> None:
    clock = VirtualClock(start_ms=1_234_567_890_000)
    with EmbeddedServer(clock=clock) as server:
        RocketMQ(server).send("orders", "one")
        server.call(clock.advance, 1000)
        RocketMQ(server).send("orders", "two")
        times = [message.store_timestamp for message in RocketMQ(server).messages("orders")]
    assert times == [1_234_567_890_000, 1_234_567_891_000]


# -- requests to the running server


def test_refused_request_raises_code_and_remark(server: EmbeddedServer) -> None:
    with pytest.raises(Refusal) as refused:
        RocketMQ(server).send("no*topic", "one")
    assert refused.value.code != 0
    assert "illegal characters" in refused.value.remark
    assert server.request(GetMaxOffset(topic="orders", queue_id=0)).offset == 0, (
        "the connection is still good"
    )


def test_stopped_server_answers_nothing() -> None:
    server = EmbeddedServer()
    for ask in (lambda: server.call(int), server.mark, server.reset, lambda: server.broker):
        with pytest.raises(NotRunningError, match="is not running"):
            ask()


def test_a_blocking_call_in_the_servers_own_thread_is_refused(server: EmbeddedServer) -> None:
    with pytest.raises(NotRunningError, match="cannot wait for itself"):
        server.call(server.call, int)
    with pytest.raises(NotRunningError, match="cannot wait for itself"):
        server.call(server.stop)
    assert connects(server.broker_addr)


# -- starting state, advertised address, disk


def test_a_bad_load_is_raised_in_the_caller_and_nothing_remains(temporary: Path) -> None:
    with pytest.raises(LoadError, match="unknown word topic"):
        EmbeddedServer(load=[{"topic": ["orders"]}]).start()


def test_routes_and_message_ids_name_the_advertised_address() -> None:
    with EmbeddedServer(advertise="10.1.2.3:7777") as server:
        assert server.broker_addr == "10.1.2.3:7777"
        assert server.node.name_server is not None
        brokers = server.call(lambda: dict(server.node.name_server.routes.brokers))  # type: ignore[union-attr]
        assert brokers["broker-a"].broker_addrs == {0: "10.1.2.3:7777"}
        sent = RocketMQ(server).send("orders", "one")
        assert (sent.msg_id or "").startswith("0A01020300001E61")
        assert connects(server.node.bound_address)


def test_bad_advertised_address_is_one_line() -> None:
    with pytest.raises(StartError, match="advertise must have the form host:port, got 'here'"):
        EmbeddedServer(advertise="here").start()


def test_a_temporary_store_takes_messages_though_the_disk_is_full(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(SystemDisk, "used_ratio", lambda self, path: 0.99)
    with EmbeddedServer() as server:
        server.call(server.broker.retention.run)
        assert RocketMQ(server).send("orders", "one").queue_offset == 0
    with EmbeddedServer(store=tmp_path) as server:
        server.call(server.broker.retention.run)
        with pytest.raises(Refusal):
            RocketMQ(server).send("orders", "one")


def at_once(function: Callable[[], T]) -> list[T]:
    """What four threads get from it that call it at the same time."""
    barrier = threading.Barrier(4)

    def called() -> T:
        barrier.wait()
        return function()

    with ThreadPoolExecutor(4) as threads:
        return [one.result() for one in [threads.submit(called) for _ in range(4)]]


def test_threads_that_ask_for_the_request_log_at_once_get_one() -> None:
    """Rules of a second one would never be cleared."""
    with EmbeddedServer() as server:
        found = at_once(lambda: server.watched)
        assert len(set(map(id, found))) == 1
        assert len(server.call(lambda: server.watched._nodes)) == 1


def test_threads_that_ask_for_the_grpc_port_at_once_get_one() -> None:
    with EmbeddedServer() as server, RocketMQCluster(brokers=1) as cluster:
        assert len(set(at_once(lambda: server.grpc_endpoint))) == 1
        assert len(server.node.side_servers) == 1
        assert len(set(at_once(lambda: cluster.grpc_endpoint))) == 1
        assert len(cluster.broker("b0").node.side_servers) == 1


def test_threads_that_send_at_once_share_a_connection() -> None:
    with EmbeddedServer() as server:
        rocketmq = RocketMQ(server)
        rocketmq.topic("orders")
        at_once(lambda: rocketmq.send("orders", "one"))
        assert len({request.peer for request in rocketmq.requests.find(code="SEND_MESSAGE_V2")}) == 1
