"""A store behind a URL has the rows of the folder, and no more of it is read than is needed."""

import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from pocketmq.pipeline.errors import CorruptStoreError, OptionError
from pocketmq.pipeline.tables import open_store, store_dataset
from pocketmq.pipeline.tables.arrow import other_tables
from pocketmq.pipeline.tables.arrow.store_table import Cut
from pocketmq.pipeline.tables.files import log_files, queue_index
from pocketmq.pipeline.tables.files.remote_files import Location

from pipeline.store_files import overwrite
from pipeline.tables.stores import COUNT, FILE_BYTES, write_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("remote") / "store")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """(name, bytes) of each read."""
    found = []
    read = Location.read

    def counted(location: Location, name: str, *place: int) -> bytes:
        data = read(location, name, *place)
        found.append((name, len(data)))
        return data

    monkeypatch.setattr(Location, "read", counted)
    return found


def url_of(store: Path) -> str:
    return f"file://{store}"


def rows(reader: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = reader.read_all().to_pylist()
    return found


def with_urls_of_files(wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "file": f"file://{row['file']}"} if row.get("file") else row for row in wanted]


@pytest.mark.parametrize("table", ["messages", "runs", "stats", "consumequeue", "consumerOffsets"])
def test_each_table_of_a_url_is_that_of_the_folder(store: Path, table: str) -> None:
    wanted = rows(open_store(store, table=table, columns="all"))
    found = rows(open_store(url_of(store), table=table, columns="all"))
    assert wanted
    assert sorted(found, key=str) == sorted(with_urls_of_files(wanted), key=str)


@pytest.mark.parametrize("first_read", [64, 1000, 1 << 24])
def test_small_splits_have_the_same_rows(
    store: Path, monkeypatch: pytest.MonkeyPatch, first_read: int
) -> None:
    monkeypatch.setattr(other_tables, "CUT", Cut(split_bytes=1000))
    monkeypatch.setattr(log_files, "FIRST_READ_BYTES", first_read)
    wanted = [row["msgId"] for row in rows(open_store(store))]
    assert [row["msgId"] for row in rows(open_store(url_of(store)))] == wanted
    assert len(wanted) == COUNT


def test_topics_filters_and_times_are_as_in_a_folder(store: Path) -> None:
    for wanted in (
        {"topics": "Bills"},
        {"filters": [("tags", "=", "A")]},
        {"since": 1_700_003_000_000, "until": 1_700_006_000_000},
        {"filters": pc.field("topic") == "Bills", "since": 1_700_003_000_000},
    ):
        found = [row["msgId"] for row in rows(open_store(url_of(store), **wanted))]
        assert found == [row["msgId"] for row in rows(open_store(store, **wanted))]
        assert found


@pytest.mark.parametrize("limit", ["GAP_BYTES", "MAX_READ"])
def test_of_a_topic_that_is_a_small_part_a_part_is_read(
    store: Path, reads: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(queue_index, limit, 1 if limit == "GAP_BYTES" else 2000)
    monkeypatch.setattr(log_files, "FIRST_READ_BYTES", 1000)
    assert len(rows(open_store(url_of(store), topics="Bills"))) == COUNT // 10
    of_log = sum(size for name, size in reads if name.startswith("commitlog"))
    assert 0 < of_log < sum(path.stat().st_size for path in (store / "commitlog").iterdir()) / 4


def test_what_no_queue_knows_is_read_as_in_a_folder(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store")
    for path in (store / "consumequeue").rglob("0" * 20):
        path.write_bytes(path.read_bytes()[: -20 * 9])
    (store / "consumequeue" / "Bills" / "2" / f"{0:020}").unlink()
    for topics in (None, "Bills", "Orders"):
        found = rows(open_store(url_of(store), topics=topics, columns="physicalOffset"))
        assert found == rows(open_store(store, topics=topics, columns="physicalOffset"))
    shutil.rmtree(store / "consumequeue")
    assert len(rows(open_store(url_of(store)))) == COUNT


def test_what_planning_needs_is_read_once(store: Path, reads: list[tuple[str, int]]) -> None:
    dataset = store_dataset(url_of(store))
    for _ in range(3):
        assert dataset.count_rows() == COUNT
    names = [name for name, _ in reads if name.startswith("consumequeue")]
    assert names
    assert len(names) == len(set(names))


def test_threads_share_the_tasks_of_a_url(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_tables, "CUT", Cut(split_bytes=4000))
    assert len(rows(open_store(url_of(store), threads=2))) == COUNT


def test_stores_of_several_brokers_may_be_folders_and_urls(store: Path) -> None:
    found = rows(open_store({"a": str(store), "b": url_of(store)}, columns="brokerName,msgId"))
    assert [row["brokerName"] for row in found] == ["a"] * COUNT + ["b"] * COUNT


def test_nothing_is_left_on_this_machine(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    reader = open_store(url_of(store))
    assert list(tmp_path.iterdir())
    reader.read_all()
    del reader
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("file:///no/such/folder", {}, r"path: file:///no/such/folder has no folder commitlog"),
        ("nofs://bucket/store", {}, r"path: nofs://bucket/store cannot be opened"),
        ("STORE", {"commit_log_path": "/x"}, "commit_log_path is for a folder"),
        ("STORE", {"table": "runs", "check_queues": True}, "check_queues is for a folder"),
        ("file:///no/such", {"table": "consumequeue"}, "path: .* has no folder commitlog"),
        ("file:///no/such", {"table": "consumerOffsets"}, "path: .* has no folder commitlog"),
    ],
)
def test_what_is_wrong_is_named(store: Path, path: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        open_store(url_of(store) if path == "STORE" else path, **options)


def test_damage_names_the_original(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store")
    file = store / "commitlog" / f"{FILE_BYTES:020}"
    overwrite(file, 0, b"\xff" * 10)
    with pytest.raises(CorruptStoreError, match=re.escape(url_of(file))):
        rows(open_store(url_of(store)))
    file.unlink()
    with pytest.raises(CorruptStoreError, match=re.escape(url_of(store))):
        open_store(url_of(store))
    reported = rows(open_store(url_of(store), on_corrupt="report", columns="status,file"))
    assert {"status": "missing", "file": url_of(store / "commitlog" / f"{0:020}")} in reported
