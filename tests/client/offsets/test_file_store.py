"""The local offset file: the official format and place, its backup, and what is written when."""

from pathlib import Path

import pytest
from pocketmq.client import ClientError, MessageQueue
from pocketmq.client.offsets.file_store import LocalFileOffsetStore

QUEUE = MessageQueue("T", "broker-a", 1)
OTHER = MessageQueue("T", "broker-a", 2)

OFFICIAL = b"""{
\t"offsetTable":{{
\t\t\t"brokerName":"broker-a",
\t\t\t"queueId":1,
\t\t\t"topic":"T"
\t\t}:12
\t}
}"""
"""As the Java client writes it: pretty, and objects for keys."""


def store(folder: Path) -> LocalFileOffsetStore:
    return LocalFileOffsetStore("10.0.0.1@DEFAULT", "g", folder)


async def test_the_path_holds_client_id_and_group(tmp_path: Path) -> None:
    assert store(tmp_path).path == tmp_path / "10.0.0.1@DEFAULT" / "g" / "offsets.json"


async def test_a_java_file_is_read(tmp_path: Path) -> None:
    offsets = store(tmp_path)
    offsets.path.parent.mkdir(parents=True)
    offsets.path.write_bytes(OFFICIAL)
    await offsets.load()
    assert offsets.read(QUEUE) == 12
    assert await offsets.in_store(OTHER) == -1


async def test_what_is_persisted_is_read_again_and_the_old_content_is_the_backup(tmp_path: Path) -> None:
    offsets = store(tmp_path)
    offsets.update(QUEUE, 5)
    offsets.update(OTHER, 7)
    await offsets.persist_all([QUEUE])
    assert await store(tmp_path).in_store(OTHER) == -1
    first = offsets.path.read_bytes()
    await offsets.persist(OTHER)
    assert offsets.path.with_name("offsets.json.bak").read_bytes() == first
    again = store(tmp_path)
    await again.load()
    assert (again.read(QUEUE), again.read(OTHER)) == (5, 7)


@pytest.mark.parametrize("damage", [b"", b"{not json", None])
async def test_a_damaged_file_is_replaced_by_its_backup(tmp_path: Path, damage: bytes | None) -> None:
    offsets = store(tmp_path)
    offsets.path.parent.mkdir(parents=True)
    offsets.path.with_name("offsets.json.bak").write_bytes(OFFICIAL)
    if damage is not None:
        offsets.path.write_bytes(damage)
    await offsets.load()
    assert offsets.read(QUEUE) == 12


async def test_with_both_damaged_loading_fails_and_reading_finds_nothing(tmp_path: Path) -> None:
    offsets = store(tmp_path)
    offsets.path.parent.mkdir(parents=True)
    for name in ("offsets.json", "offsets.json.bak"):
        offsets.path.with_name(name).write_bytes(b"{not json")
    with pytest.raises(ClientError, match="cannot be read"):
        await offsets.load()
    assert await offsets.in_store(QUEUE) == -1
    offsets.update(QUEUE, 3)
    await offsets.persist(QUEUE)  # logged, and the files stay as they are
    assert offsets.path.read_bytes() == b"{not json"
