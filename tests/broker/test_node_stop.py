"""The end of a process when something goes wrong on the way: the store is closed whatever else fails."""

import asyncio
from pathlib import Path

import pytest
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.node import Node
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.store import StoreConfig

from waiting import until


def make_node(folder: Path) -> Node:
    store = StoreConfig(
        store_path_root_dir=str(folder),
        mapped_file_size_commit_log=1 << 20,
        mapped_file_size_consume_queue=20_000,
        max_hash_slot_num=1000,
        max_index_num=4000,
    )
    return Node(BrokerConfig(store=store, listen_port=0), NameServerConfig(listen_port=0))


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
    again = make_node(tmp_path)
    await again.start()
    assert again.broker.offsets.query("orders", "g", 0) == 5
    await again.stop()


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
    await node.broker.tables.saved(node.broker.topics)
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
    again = make_node(tmp_path)
    await again.start()
    assert "orders" in again.broker.topics
    assert again.broker.offsets.query("orders", "g", 0) == -1
    await again.stop()
