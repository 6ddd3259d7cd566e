"""Saving of tables: together, in the background, with a callback once they are written."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

import pytest
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.errors import Refusal
from pocketmq.broker.state import table_saver
from pocketmq.broker.state.table_saver import TableSaver
from pocketmq.broker.tables.group_table import GroupTable
from pocketmq.broker.tables.json_table import MapText
from pocketmq.protocol.wire.response_codes import ResponseCode

from waiting import until

WAIT_SECONDS = 5


@pytest.fixture
async def tables() -> AsyncIterator[TableSaver]:
    tables = TableSaver()
    yield tables
    tables.stop()


@pytest.fixture
async def groups(tables: TableSaver, tmp_path: Path) -> GroupTable:
    """Announces each change, as in a broker; GroupTable(...) itself contains the built-in groups."""
    table = GroupTable(tmp_path / "config", lambda: 1, BrokerConfig())
    table.on_change = lambda: tables.save_soon(table)
    return table


async def saved(tables: TableSaver, groups: GroupTable) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        await tables.wait_until_saved(groups)


def saved_groups(groups: GroupTable) -> set[str]:
    if not groups.file.path.exists():
        return set()
    return set(json.loads(groups.file.path.read_text(encoding="utf-8"))["subscriptionGroupTable"])


async def test_change_is_on_disk_when_the_wait_ends(tables: TableSaver, groups: GroupTable) -> None:
    groups.find_or_create("g1")
    assert groups in tables.unsaved
    await saved(tables, groups)
    assert "g1" in saved_groups(groups)
    assert groups not in tables.unsaved


async def test_without_a_change_there_is_no_wait(tables: TableSaver, groups: GroupTable) -> None:
    heard: list[str] = []
    tables.call_when_saved(groups, lambda _: heard.append("at once"))
    assert heard == ["at once"]
    await tables.wait_until_saved(groups)
    assert not groups.file.path.exists()


async def test_changes_that_follow_at_once_are_written_together(
    tables: TableSaver, groups: GroupTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[bytes] = []
    monkeypatch.setattr(groups.file, "save", lambda pieces: writes.append(b"".join(pieces)))
    for number in range(100):
        groups.find_or_create(f"g{number}")
    await saved(tables, groups)
    assert len(writes) == 1
    assert b'"g99"' in writes[0]


async def test_change_made_during_a_write_waits_for_the_next(tables: TableSaver, groups: GroupTable) -> None:
    groups.find_or_create("g1")
    heard: list[set[str]] = []

    def first_is_saved(_: bool) -> None:
        heard.append(saved_groups(groups))

    tables.call_when_saved(groups, first_is_saved)
    async with asyncio.timeout(WAIT_SECONDS):
        while not heard:
            groups.find_or_create(f"later{len(groups)}")
            last = f"later{len(groups) - 1}"
            await asyncio.sleep(0)
        await tables.wait_until_saved(groups)
    assert "g1" in heard[0]
    assert last in saved_groups(groups)


async def test_failing_disk_ends_the_wait(
    tables: TableSaver, groups: GroupTable, caplog: pytest.LogCaptureFixture
) -> None:
    groups.file.path.parent.write_bytes(b"a file where the folder should be")
    groups.find_or_create("g1")
    with pytest.raises(Refusal, match=r"the disk refuses subscriptionGroup\.json") as refused:
        await saved(tables, groups)
    assert refused.value.code == ResponseCode.SYSTEM_ERROR
    assert "cannot write" in caplog.text
    assert groups.dirty
    with pytest.raises(Refusal):
        await tables.wait_until_saved(
            groups
        )  # the same request again: it changes nothing, and nothing is on disk


async def test_what_a_failing_disk_refused_is_written_once_it_works_again(
    tables: TableSaver, groups: GroupTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_saver, "RETRY_SECONDS", 0.01)
    folder = groups.file.path.parent
    folder.write_bytes(b"a file where the folder should be")
    loop, written, save = asyncio.get_running_loop(), asyncio.Event(), groups.file.save

    def observed(pieces: Iterable[bytes]) -> None:
        save(pieces)
        loop.call_soon_threadsafe(written.set)

    monkeypatch.setattr(groups.file, "save", observed)
    groups.find_or_create("g1")
    async with asyncio.timeout(WAIT_SECONDS):
        with pytest.raises(Refusal):
            await tables.wait_until_saved(groups)
        folder.unlink()
        await written.wait()
        await tables.wait_until_saved(groups)
    assert "g1" in saved_groups(groups)
    assert groups not in tables.unsaved
    assert not groups.dirty


async def test_stop_ends_the_wait(groups: GroupTable) -> None:
    tables = TableSaver()
    tables.save_soon(groups)
    heard: list[str] = []
    tables.call_when_saved(groups, lambda _: heard.append("stopped"))
    tables.stop()
    assert heard == ["stopped"]


async def test_an_unforeseen_error_of_the_writer_ends_the_wait_and_is_tried_again(
    tables: TableSaver, groups: GroupTable, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(table_saver, "RETRY_SECONDS", 0.01)
    failures = [RuntimeError("made up")]
    save = groups.file.save

    def fail_once(pieces: Iterable[bytes]) -> None:
        if failures:
            raise failures.pop()
        save(pieces)

    monkeypatch.setattr(groups.file, "save", fail_once)
    groups.find_or_create("g1")
    async with asyncio.timeout(WAIT_SECONDS):
        with pytest.raises(Refusal):
            await tables.wait_until_saved(groups)
        assert "g1" not in saved_groups(groups)
        assert "made up" in caplog.text
        await until(lambda: "g1" in saved_groups(groups) and groups not in tables.unsaved)


async def test_the_text_is_made_in_the_writers_thread_of_the_table_as_it_was(
    tables: TableSaver, groups: GroupTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, texts = set[str](), list[bytes]()
    pieces = MapText.pieces

    def observed(self: MapText, table: dict[str, object]) -> Iterator[bytes]:
        threads.add(threading.current_thread().name)
        return pieces(self, table)

    monkeypatch.setattr(MapText, "pieces", observed)
    monkeypatch.setattr(groups.file, "save", lambda pieces: texts.append(b"".join(pieces)))
    groups.find_or_create("g1")
    tables.save(groups)
    groups.find_or_create("g2")
    await saved(tables, groups)
    assert {name.partition("_")[0] for name in threads} == {"pocketmq-json"}
    assert b"g1" in texts[0]
    assert b"g2" not in texts[0]
    assert b"g2" in texts[1]


async def test_changes_made_during_a_write_are_written_together(
    tables: TableSaver, groups: GroupTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, texts = threading.Event(), list[bytes]()

    def slow(pieces: Iterable[bytes]) -> None:
        texts.append(b"".join(pieces))
        release.wait(WAIT_SECONDS)

    monkeypatch.setattr(groups.file, "save", slow)
    groups.find_or_create("g")
    tables.save(groups)
    for number in range(5):
        groups.find_or_create(f"g{number}")
        tables.save(groups)
    release.set()
    await saved(tables, groups)
    assert len(texts) == 2
    assert b"g4" in texts[1]
