"""Whole nodes with sockets for tests: a small store, free ports, and one request to one of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.node import Node
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.store import StoreConfig

WAIT_SECONDS = 30.0
"""Never reached where all is well."""


def make_node(
    folder: Path, *, port: int = 0, namesrv: str = "", store: dict[str, Any] | None = None, **settings: Any
) -> Node:
    """A node with a name server of its own, unless it registers at `namesrv`."""
    store_config = StoreConfig(
        store_path_root_dir=str(folder),
        mapped_file_size_commit_log=1 << 20,
        mapped_file_size_consume_queue=20_000,
        max_hash_slot_num=1000,
        max_index_num=4000,
        **(store or {}),
    )
    config = BrokerConfig(store=store_config, listen_port=port, namesrv_addr=namesrv, **settings)
    return Node(config, None if namesrv else NameServerConfig(listen_port=0))


@asynccontextmanager
async def running(node: Node) -> AsyncIterator[Node]:
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


async def call(
    address: str, code: int, fields: dict[str, str] | None = None, body: bytes | None = None
) -> Command:
    """The reply to one request, on a connection of its own."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(encode_frame(Command(code, 1, fields=fields, body=body)))
    cutter, replies = FrameCutter(), list[Command]()
    async with asyncio.timeout(WAIT_SECONDS):
        while not replies:
            replies = cutter.feed(await reader.read(65536))
    writer.close()
    return replies[0]
