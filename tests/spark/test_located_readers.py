"""Stores and journals of several brokers and behind URLs: the same rows as from one folder. Readers, without a JVM."""

from pathlib import Path
from typing import Any

import pytest
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.spark.sources.journal_source import JournalSource
from pocketmq.pipeline.spark.sources.store_source import StoreSource
from pocketmq.pipeline.tables.files import remote_files
from pyarrow import fs

from spark.conftest import IN_EACH_STORE
from spark.source_readers import rows, schema

MESSAGES = "queueId int, queueOffset bigint, body binary, brokerName string"


@pytest.fixture
def bucket(stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file system in memory with store `a` in `bucket/store`: what an object store looks like to a reader."""
    files = fs._MockFileSystem()
    for folder in ("commitlog", "consumequeue", "config"):
        for path in (stores["a"] / folder).rglob("*"):
            name = f"bucket/store/{path.relative_to(stores['a'])}"
            if path.is_dir():
                files.create_dir(name)
                continue
            files.create_dir(name.rpartition("/")[0])
            with files.open_output_stream(name) as copy:
                copy.write(path.read_bytes())
    monkeypatch.setattr(remote_files, "file_system", lambda url: (files, url.partition("://")[2]))
    remote_files.location_of.cache_clear()
    return files


def test_a_store_in_an_object_store_has_the_rows_of_the_folder(stores: dict[str, Path], bucket: Any) -> None:
    options = {"topics": "T", "splitBytes": "1000", "brokerName": "x"}
    wanted = sorted(rows(StoreSource, MESSAGES, path=str(stores["a"]), **options))
    assert sorted(rows(StoreSource, MESSAGES, path="s3://bucket/store/", **options)) == wanted
    runs = rows(StoreSource, "records bigint", path="s3://bucket/store", table="runs", topics="T")
    assert sum(records for (records,) in runs) == IN_EACH_STORE
    of_table = {"table": "stats", "topics": "T", "splitBytes": "2000"}
    counts = rows(StoreSource, "bytes bigint, messages bigint", path=str(stores["a"]), **of_table)
    assert sum(messages for _, messages in counts) == IN_EACH_STORE


def test_the_column_file_names_the_original_without_keys_and_parameters(
    stores: dict[str, Path], bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A location may hold keys: `s3://key:secret@bucket/store?endpoint_override=...`."""
    url = "s3://someone:hidden@bucket/store/?endpoint_override=127.0.0.1:1&scheme=http"
    monkeypatch.setattr(remote_files, "file_system", lambda _: (bucket, "bucket/store/"))
    remote_files.location_of.cache_clear()
    files = {str(file) for (file,) in rows(StoreSource, "file string", path=url)}
    assert {file.rpartition("/")[0] for file in files} == {"s3://bucket/store/commitlog"}
    bucket.delete_dir_contents("bucket/store")
    with pytest.raises(OptionError, match=r"s3://bucket/store has no folder commitlog"):
        rows(StoreSource, "file string", path=url)
    with pytest.raises(OptionError, match=r"s3://bucket/store has no file"):
        rows(JournalSource, "file string", path=url)


@pytest.mark.parametrize(
    "location", ["s3://someone:hidden@/", "nofs://someone:hidden@bucket/store?token=hidden"]
)
def test_keys_in_a_location_are_in_no_error_message(location: str) -> None:
    for source, column in ((StoreSource, "file string"), (JournalSource, "topic string")):
        with pytest.raises(OptionError) as error:
            rows(source, column, path=location)
        assert "hidden" not in str(error.value)


def test_the_column_file_of_a_journal_behind_a_url_names_the_original(stores: dict[str, Path]) -> None:
    url = f"file://{stores['journal-a']}"
    files = {str(file) for (file,) in rows(JournalSource, "file string", path=url)}
    assert files == {
        f"file://{path}" for (path,) in rows(JournalSource, "file string", path=str(stores["journal-a"]))
    }


def test_a_file_that_is_deleted_from_an_object_store_after_planning_is_named(bucket: Any) -> None:
    reader = StoreSource({"path": "s3://bucket/store"}).reader(schema("queueOffset bigint"))
    first, *_ = reader.partitions()
    bucket.delete_file(f"bucket/store/commitlog/{0:020}")
    with pytest.raises(OSError, match=f"{0:020}"):
        list(reader.read(first))


def test_the_journals_of_several_brokers_are_one_table(stores: dict[str, Path]) -> None:
    columns = "request string, topic string"
    single = [
        row
        for name in ("a", "b")
        for row in rows(JournalSource, columns, path=str(stores[f"journal-{name}"]))
    ]
    paths = f'{{"a":"{stores["journal-a"]}","b":"file://{stores["journal-b"]}"}}'
    assert sorted(rows(JournalSource, columns, paths=paths), key=str) == sorted(single, key=str)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"paths": "[]"}, "paths must be JSON such as"),
        ({"paths": "{}"}, "paths must be JSON such as"),
        ({"paths": '{"a": 1}'}, "paths must be JSON such as"),
        ({"paths": "/a,/b"}, "paths must be JSON such as"),
        ({"paths": '{"a":"/a"}', "path": "/b"}, "leave out path, brokerName, commitLogPath"),
        ({"paths": '{"a":"/a"}', "table": "consumequeue"}, "option paths is for table=messages"),
        ({"path": "file:///nowhere/at/all"}, "has no folder commitlog"),
        ({"path": "nofs://x/y"}, "nofs://x/y cannot be opened"),
        ({"path": "file:///x", "driver": "consumequeue"}, "a URL is read with driver=commitlog"),
        ({"path": "/a", "checkQueues": "true"}, "option checkQueues is for table=runs, got table=messages"),
        (
            {"path": "/a", "table": "runs", "driver": "consumequeue"},
            "driver must be commitlog for table=runs",
        ),
        ({"path": "/a", "table": "run"}, "option table must be one of messages, runs, stats, consumequeue"),
    ],
)
def test_a_wrong_location_or_table_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        rows(StoreSource, "queueOffset bigint", **options)


def test_a_journal_without_files_behind_a_url_is_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="so is no journal"):
        rows(JournalSource, "topic string", path=f"file://{tmp_path}")
