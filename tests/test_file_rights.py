"""No file of a user gets wider rights than it had when it is written again: by the broker, the client, the companion
and the pipeline.

Each file is made, closed to others, and written again under a umask that closes nothing.
"""

import asyncio
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pocketmq.broker.process import write_ports
from pocketmq.client import MessageQueue
from pocketmq.client.offsets.file_store import LocalFileOffsetStore
from pocketmq.pipeline.jobs.moving.offset_map import OffsetMap, Piece, Queue
from pocketmq.store.files.json_file import JsonFile
from pocketmq.store.files.lost_files import LostFiles
from pocketmq.testing import EmbeddedServer, RocketMQ

from raw_peer import SEND_MESSAGE, SUCCESS, ServedProcess, send_fields

PUT_KV_CONFIG, UPDATE_GROUP, COMMIT, UPDATE_SETTINGS = 100, 200, 15, 25


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    former = os.umask(0)
    yield
    os.umask(former)


def rights_of_others(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode) & 0o077


def closed(folder: Path) -> list[Path]:
    """All files in it, which only their owner may read from now on."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        path.chmod(0o600)
    return files


def opened(folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and rights_of_others(path)
    ]


def test_a_broker_and_a_name_server_keep_the_rights_of_all_their_files(tmp_path: Path) -> None:
    def live(name: str) -> None:
        with (
            ServedProcess(tmp_path) as served,
            served.broker() as broker,
            served.name_server() as name_server,
        ):
            assert broker.call(SEND_MESSAGE, send_fields(name), b"x").code == SUCCESS
            assert broker.call(UPDATE_GROUP, {}, json.dumps({"groupName": name}).encode()).code == SUCCESS
            offset = {"consumerGroup": name, "topic": name, "queueId": 0, "commitOffset": 0}
            assert broker.call(COMMIT, offset).code == SUCCESS
            pair = {"namespace": "ORDER_TOPIC_CONFIG", "key": name, "value": "v"}
            assert name_server.call(PUT_KV_CONFIG, pair).code == SUCCESS

    live("first")
    files = closed(tmp_path / "store")
    assert {"topics.json", "consumerOffset.json"} <= {path.name for path in files}
    live("second")
    assert [path for path in files if path.exists() and rights_of_others(path)] == []
    assert opened(tmp_path / "store" / "config") == [], "backups are copies of what was closed"


def test_a_table_whose_file_is_lost_gets_the_rights_of_its_backup(tmp_path: Path) -> None:
    table = JsonFile(tmp_path / "topics.json")
    table.save(b"{}")
    table.save(b"{}")
    closed(tmp_path)
    table.path.unlink()
    table.save(b"{}")
    assert opened(tmp_path) == []


def test_damaged_bytes_of_a_log_are_kept_for_its_owner_alone(tmp_path: Path) -> None:
    LostFiles(tmp_path / "lost").keep(0, b"damaged")
    assert opened(tmp_path) == []
    assert [path.read_bytes() for path in (tmp_path / "lost").iterdir()] == [b"damaged"]


# -- files that are replaced by another


def _ports(folder: Path) -> None:
    node = SimpleNamespace(namesrv_address="127.0.0.1:1", bound_address="127.0.0.1:2")
    write_ports(folder / "ports.json", cast(Any, node), {})


def _offsets(folder: Path) -> None:
    queue = MessageQueue("t", "broker-a", 0)

    async def persisted() -> None:
        store = LocalFileOffsetStore("client", "group", folder)
        store.update(queue, 7)
        await store.persist(queue)

    asyncio.run(persisted())


def _offset_map(folder: Path) -> None:
    kept, queue = OffsetMap(folder / "map"), Queue(topic="t", broker_name="broker-a", queue_id=0)
    kept.add(queue, [Piece(0, 9, queue, 0)])
    kept.save()


def _snapshot(folder: Path) -> None:
    with EmbeddedServer() as server:
        RocketMQ(server).snapshot().save(folder / "state.pocketmq")


@pytest.mark.parametrize("write", [_ports, _offsets, _offset_map, _snapshot])
def test_a_file_that_is_replaced_keeps_its_rights(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path)
    files = {path: path.stat().st_ino for path in closed(tmp_path)}
    write(tmp_path)
    assert opened(tmp_path) == []
    assert any(path.stat().st_ino != number for path, number in files.items()), "it was replaced"
