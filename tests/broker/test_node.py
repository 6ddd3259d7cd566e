"""The whole process, started and stopped: order, ports, what survives a restart, what a failed start leaves."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.errors import StartError
from pocketmq.broker.handler_modules import HANDLER_MODULES
from pocketmq.broker.node import Node
from pocketmq.client.producing.producer import Producer
from pocketmq.client.pulling.pull_consumer import PullConsumer
from pocketmq.client.values.message import Message
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.store import StoreConfig, StoreError

from waiting import until


def make_node(folder: Path, *, port: int = 0, **settings: Any) -> Node:
    store = StoreConfig(
        store_path_root_dir=str(folder),
        mapped_file_size_commit_log=1 << 20,
        mapped_file_size_consume_queue=20_000,
        max_hash_slot_num=1000,
        max_index_num=4000,
    )
    return Node(BrokerConfig(store=store, listen_port=port, **settings), NameServerConfig(listen_port=0))


async def raw_call(address: str, code: int, fields: dict[str, str] | None = None) -> Command:
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(encode_frame(Command(code, 1, fields=fields)))
    cutter = FrameCutter()
    replies: list[Command] = []
    while not replies:
        replies = cutter.feed(await reader.read(65536))
    writer.close()
    return replies[0]


async def test_a_started_node_is_in_the_route_table(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    await node.start()
    try:
        reply = await raw_call(node.namesrv_address, 105, {"topic": "TBW102"})
        assert reply.code == 0
        assert node.broker_address.encode() in bytes(reply.body or b"")
    finally:
        await node.stop()


async def test_messages_and_offsets_survive_a_restart(tmp_path: Path) -> None:
    for expected in (0, 3):
        node = make_node(tmp_path)
        await node.start()
        try:
            async with (
                Producer("pg", namesrv_addr=node.namesrv_address) as producer,
                PullConsumer("g", namesrv_addr=node.namesrv_address) as puller,
            ):
                for _ in range(3):
                    await producer.send("orders", b"x", queue_id=0)
                await node.broker.cluster.registration.settled()  # the name server knows the new topic
                queue = (await puller.queues("orders"))[0]
                read = await puller.pull(queue, expected)
                assert len(read.messages) == 3
                assert await puller.committed(queue) == expected
                await puller.commit(queue, read.next_offset)
        finally:
            await node.stop()


async def test_a_batch_wakes_the_pull_that_waits_for_its_queue(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    await node.start()
    try:
        async with (
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
    finally:
        await node.stop()


async def test_a_second_node_cannot_open_the_store(tmp_path: Path) -> None:
    node, second = make_node(tmp_path), make_node(tmp_path)
    await node.start()
    try:
        with pytest.raises(StoreError):
            await second.start()
        assert (await raw_call(node.namesrv_address, 106)).code == 0
    finally:
        await node.stop()


async def test_a_port_in_use_is_a_start_error_and_frees_the_store(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        node = make_node(tmp_path, port=taken.getsockname()[1])
        with pytest.raises(StartError, match="cannot listen on"):
            await node.start()
    again = make_node(tmp_path)
    await again.start()
    await again.stop()


async def test_stop_ends_every_task_and_timer_of_ours(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    node = make_node(tmp_path)
    await node.start()
    await raw_call(node.broker_address, 28)
    await node.stop()
    assert asyncio.all_tasks() == before


async def test_a_silent_name_server_does_not_delay_what_a_broker_repeats(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        namesrv = f"127.0.0.1:{silent.getsockname()[1]}"
        node = make_node(tmp_path, namesrv_addr=namesrv, register_broker_timeout_mills=20_000)
        starting = asyncio.create_task(node.start())
        await until(lambda: node._broker is not None and node._broker.cluster.registration._is_running)
        assert node.broker._periodic_actions._repeated
        assert not starting.done()
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)


async def test_the_fast_port_serves_everything_but_reading(tmp_path: Path) -> None:
    node = make_node(tmp_path)
    await node.start()
    try:
        host, _, port = node.broker_address.rpartition(":")
        fast = f"{host}:{int(port) - 2}"
        assert (await raw_call(fast, 28)).code == 0
        reply = await raw_call(fast, 11, {"consumerGroup": "g"})
        assert (reply.code, reply.remark) == (3, " request type 11 not supported")
    finally:
        await node.stop()


@pytest.mark.parametrize(("emulate", "version", "code"), [(5, 513, 0), (4, 407, 3)])
async def test_a_line_answers_with_its_version_and_knows_its_codes(
    tmp_path: Path, emulate: Any, version: int, code: int
) -> None:
    node = make_node(tmp_path, emulate=emulate)
    await node.start()
    try:
        reply = await raw_call(node.broker_address, 351, {"topic": "TBW102"})
        assert (reply.version, reply.code) == (version, code)
    finally:
        await node.stop()


def test_the_table_of_contents_names_every_handler_module() -> None:
    folder = Path(__import__("pocketmq.broker.node", fromlist=["x"]).__file__).parent
    files = set(folder.rglob("*handlers.py"))
    assert files == {Path(module.__file__ or "") for module in HANDLER_MODULES}
