"""The whole process, started, stopped and killed: order, ports, what survives, what a failed start or stop leaves."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.errors import StartError
from pocketmq.broker.handler_modules import HANDLER_MODULES
from pocketmq.broker.network.server import Server
from pocketmq.client.producing.producer import Producer
from pocketmq.client.pulling.pull_consumer import PullConsumer
from pocketmq.client.values.message import Message
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.message_queue import MessageQueue

from broker.nodes import call, make_node, running
from waiting import until


async def test_a_started_node_is_in_the_route_table(tmp_path: Path) -> None:
    async with running(make_node(tmp_path)) as node:
        reply = await call(node.namesrv_address, 105, {"topic": "TBW102"})
        assert reply.code == 0
        assert node.broker_address.encode() in bytes(reply.body or b"")


async def test_messages_and_offsets_survive_a_restart(tmp_path: Path) -> None:
    for expected in (0, 3):
        async with (
            running(make_node(tmp_path)) as node,
            Producer("pg", namesrv_addr=node.namesrv_address) as producer,
            PullConsumer("g", namesrv_addr=node.namesrv_address) as puller,
        ):
            for _ in range(3):
                await producer.send("orders", b"x", queue_id=0)
            await node.broker.cluster.registration.wait_until_sent()  # the name server knows the new topic
            queue = (await puller.queues("orders"))[0]
            read = await puller.pull(queue, expected)
            assert len(read.messages) == 3
            assert await puller.committed(queue) == expected
            await puller.commit(queue, read.next_offset)


async def test_a_batch_wakes_the_pull_that_waits_for_its_queue(tmp_path: Path) -> None:
    async with (
        running(make_node(tmp_path)) as node,
        Producer("pg", namesrv_addr=node.namesrv_address) as producer,
        PullConsumer("g", namesrv_addr=node.namesrv_address) as puller,
    ):
        queue = MessageQueue("BenchmarkTest", node.broker.config.broker_name, 3)
        await producer.send(Message(queue.topic, b"first"), queue=queue)
        pull = asyncio.create_task(puller.pull(queue, 1, wait_ms=15_000))
        await until(lambda: len(node.broker.pulling.waiters))
        await producer.send_batch([Message(queue.topic, b"1"), Message(queue.topic, b"2")], queue=queue)
        read = await pull
        assert [message.body for message in read.messages] == [b"1", b"2"]


async def test_a_port_in_use_is_a_start_error_and_frees_the_store(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        node = make_node(tmp_path, port=taken.getsockname()[1])
        with pytest.raises(StartError, match="cannot listen on"):
            await node.start()
    async with running(make_node(tmp_path)):
        pass


async def test_stop_ends_every_task_and_timer_of_ours(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    node = make_node(tmp_path)
    await node.start()
    await call(node.broker_address, 28)
    await node.stop()
    assert asyncio.all_tasks() == before


async def test_a_silent_name_server_does_not_delay_what_a_broker_repeats(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        namesrv = f"127.0.0.1:{silent.getsockname()[1]}"
        node = make_node(tmp_path, namesrv=namesrv, register_broker_timeout_mills=20_000)
        starting = asyncio.create_task(node.start())
        await until(lambda: node._broker is not None and node._broker.cluster.registration._is_running)
        assert node.broker._periodic_actions._repeated
        assert not starting.done()
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)


async def test_the_fast_port_serves_everything_but_reading(tmp_path: Path) -> None:
    async with running(make_node(tmp_path)) as node:
        host, _, port = node.broker_address.rpartition(":")
        fast = f"{host}:{int(port) - 2}"
        assert (await call(fast, 28)).code == 0
        reply = await call(fast, 11, {"consumerGroup": "g"})
        assert (reply.code, reply.remark) == (3, " request type 11 not supported")


async def test_a_free_port_is_one_whose_fast_port_is_free_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bind, tried = Server.bind, list[int]()

    async def bind_at_the_third_try(server: Server, host: str, port: int) -> int:
        tried.append(port)
        if port and sum(map(bool, tried)) < 3:
            raise StartError("Address already in use")
        return await bind(server, host, port)

    monkeypatch.setattr(Server, "bind", bind_at_the_third_try)
    async with running(make_node(tmp_path)) as node:
        host, _, port = node.broker_address.rpartition(":")
        assert [port == 0 for port in tried[-6:]] == [True, False] * 3
        assert tried[-1] == int(port) - 2
        assert (await call(node.broker_address, 28)).code == 0
        assert (await call(f"{host}:{tried[-1]}", 28)).code == 0
    assert not caplog.records


@pytest.mark.parametrize(("emulate", "version", "code"), [(5, 513, 0), (4, 407, 3)])
async def test_a_line_answers_with_its_version_and_knows_its_codes(
    tmp_path: Path, emulate: Any, version: int, code: int
) -> None:
    async with running(make_node(tmp_path, emulate=emulate)) as node:
        reply = await call(node.broker_address, 351, {"topic": "TBW102"})
        assert (reply.version, reply.code) == (version, code)


def test_the_table_of_contents_names_every_handler_module() -> None:
    folder = Path(__import__("pocketmq.broker.node", fromlist=["x"]).__file__).parent
    files = set(folder.rglob("*handlers.py"))
    assert files == {Path(module.__file__ or "") for module in HANDLER_MODULES}


# -- the end when something goes wrong on the way


async def test_a_table_that_cannot_be_saved_keeps_neither_the_others_nor_the_store_from_their_end(
    tmp_path: Path,
) -> None:
    node = make_node(tmp_path)
    await node.start()
    node.broker.topics.update(TopicConfig(topic_name="orders"))
    node.broker.offsets.commit("orders", "g", 0, 5)
    saved = tmp_path / "config" / "topics.json"
    await until(lambda: saved.exists() and b'"orders"' in saved.read_bytes())  # after a moment
    node.broker.topics.dirty = True
    (tmp_path / "config" / "topics.json.tmp").mkdir()
    await node.stop()
    assert (tmp_path / "config" / "consumerOffset.json").exists()
    assert not (tmp_path / "abort").exists()
    (tmp_path / "config" / "topics.json.tmp").rmdir()
    async with running(make_node(tmp_path)) as again:
        assert again.broker.offsets.query("orders", "g", 0) == 5


async def test_a_failure_while_leaving_still_closes_sockets_and_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = make_node(tmp_path)
    await node.start()

    async def fail() -> None:
        raise RuntimeError("name server")

    monkeypatch.setattr(node.broker.cluster.registration, "stop", fail)
    with pytest.raises(RuntimeError, match="name server"):
        await node.stop()
    assert not (tmp_path / "abort").exists()
    for address in (node.broker_address, node.broker.state.identity.ha_address, node.namesrv_address):
        host, _, port = address.rpartition(":")
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, int(port))


async def test_a_killed_node_tells_nobody_saves_nothing_and_its_next_start_recovers(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    await node.start()
    node.broker.topics.update(TopicConfig(topic_name="orders"))
    await node.broker.tables.wait_until_saved(node.broker.topics)
    node.broker.offsets.commit("orders", "g", 0, 5)
    host, _, port = node.broker_address.rpartition(":")
    silent, silent_writer = await asyncio.open_connection(host, int(port))
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"\0")
    peer = "{}:{}".format(*writer.get_extra_info("sockname"))
    await until(lambda: any(connection.peer == peer for connection in node.server.connections))
    await node.kill()
    for one in (silent, reader):
        with pytest.raises(ConnectionResetError):
            await one.read(1)
    silent_writer.close()
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))
    assert (tmp_path / "abort").exists()
    assert not (tmp_path / "config" / "consumerOffset.json").exists()
    async with running(make_node(tmp_path)) as again:
        assert "orders" in again.broker.topics
        assert again.broker.offsets.query("orders", "g", 0) == -1
