"""Saving of tables: together, in the background, with a callback once they are written."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pocketmq.broker.state import table_saver
from pocketmq.broker.state.table_saver import TableSaver
from pocketmq.store.tables.group_table import GroupSettings, GroupTable

WAIT_SECONDS = 5


@pytest.fixture
async def tables() -> AsyncIterator[TableSaver]:
    tables = TableSaver()
    yield tables
    tables.stop()


@pytest.fixture
async def groups(tables: TableSaver, tmp_path: Path) -> GroupTable:
    """Announces each change, as in a broker; GroupTable(...) itself contains the built-in groups."""
    table = GroupTable(tmp_path / "config", lambda: 1, GroupSettings(), lambda: tables.save_soon(table))
    return table


def saved_groups(groups: GroupTable) -> set[str]:
    if not groups.file.path.exists():
        return set()
    return set(json.loads(groups.file.path.read_text(encoding="utf-8"))["subscriptionGroupTable"])


async def test_change_is_on_disk_when_the_wait_ends(tables: TableSaver, groups: GroupTable) -> None:
    groups.find_or_create("g1")
    assert groups in tables.unsaved
    async with asyncio.timeout(WAIT_SECONDS):
        await tables.saved(groups)
    assert "g1" in saved_groups(groups)
    assert groups not in tables.unsaved


async def test_without_a_change_there_is_no_wait(tables: TableSaver, groups: GroupTable) -> None:
    heard: list[str] = []
    tables.when_saved(groups, lambda: heard.append("at once"))
    assert heard == ["at once"]
    await tables.saved(groups)
    assert not groups.file.path.exists()


async def test_changes_that_follow_at_once_are_written_together(
    tables: TableSaver, groups: GroupTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[bytes] = []
    monkeypatch.setattr(groups.file, "save", writes.append)
    for number in range(100):
        groups.find_or_create(f"g{number}")
    async with asyncio.timeout(WAIT_SECONDS):
        await tables.saved(groups)
    assert len(writes) == 1
    assert b'"g99"' in writes[0]


async def test_change_made_during_a_write_waits_for_the_next(tables: TableSaver, groups: GroupTable) -> None:
    groups.find_or_create("g1")
    heard: list[set[str]] = []

    def first_is_saved() -> None:
        heard.append(saved_groups(groups))

    tables.when_saved(groups, first_is_saved)
    async with asyncio.timeout(WAIT_SECONDS):
        while not heard:
            groups.find_or_create(f"later{len(groups)}")
            last = f"later{len(groups) - 1}"
            await asyncio.sleep(0)
        await tables.saved(groups)
    assert "g1" in heard[0]
    assert last in saved_groups(groups)


async def test_failing_disk_ends_the_wait(
    tables: TableSaver, groups: GroupTable, caplog: pytest.LogCaptureFixture
) -> None:
    groups.file.path.parent.write_bytes(b"a file where the folder should be")
    groups.find_or_create("g1")
    async with asyncio.timeout(WAIT_SECONDS):
        await tables.saved(groups)
    assert "cannot write" in caplog.text
    assert groups.dirty


async def test_what_a_failing_disk_refused_is_written_once_it_works_again(
    tables: TableSaver, groups: GroupTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_saver, "RETRY_SECONDS", 0.01)
    folder = groups.file.path.parent
    folder.write_bytes(b"a file where the folder should be")
    loop, written, save = asyncio.get_running_loop(), asyncio.Event(), groups.file.save

    def observed(content: bytes) -> None:
        save(content)
        loop.call_soon_threadsafe(written.set)

    monkeypatch.setattr(groups.file, "save", observed)
    groups.find_or_create("g1")
    async with asyncio.timeout(WAIT_SECONDS):
        await tables.saved(groups)
        folder.unlink()
        await written.wait()
    assert "g1" in saved_groups(groups)
    assert groups not in tables.unsaved
    assert not groups.dirty


async def test_stop_ends_the_wait(groups: GroupTable) -> None:
    tables = TableSaver()
    tables.save_soon(groups)
    heard: list[str] = []
    tables.when_saved(groups, lambda: heard.append("stopped"))
    tables.stop()
    assert heard == ["stopped"]
