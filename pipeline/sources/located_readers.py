"""Stores and journals of several brokers, and those behind a URL, read by the readers of one local folder.

    option("paths", '{"broker-a": "/data/a", "broker-b": "s3://bucket/b"}')

A location with a scheme (s3://, gs://, hdfs://, file://) is not mapped: each task copies the bytes it needs to its own
machine (`files/remote_copies.py`). A plain path must be the same on the driver and on every executor.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ..errors import OptionError
from ..files.consume_queues import QueueSplit
from ..files.log_files import LogFile, LogSplit
from ..files.remote_copies import Location, copy_plan, is_url, naming_originals, temporary_copies, with_urls
from ..planning.option_values import plain_options
from .store_source import (
    CONSUMER_OFFSETS,
    MESSAGES,
    SplitPartition,
    StoreReader,
    StoreSource,
    read_store_options,
)

PATHS: Final = "paths"
_EXAMPLE: Final = '{"broker-a":"/data/a","broker-b":"s3://bucket/b"}'
_LOCAL: Final = "/unused"
"""A path where only the other options are checked."""


def read_paths(options: Mapping[str, Any]) -> tuple[dict[str, str] | None, dict[str, str]]:
    """(location of each broker or None without option `paths`, the other options). `OptionError` for other JSON."""
    texts = plain_options(options)
    named = {key: text for key, text in texts.items() if key.lower() == PATHS}
    others = {key: text for key, text in texts.items() if key.lower() != PATHS}
    if not named:
        return None, others
    (text,) = named.values()
    try:
        paths = json.loads(text)
    except ValueError:
        paths = None
    if (
        not isinstance(paths, dict)
        or not paths
        or not all(isinstance(path, str) and path for path in paths.values())
    ):
        raise OptionError(f"option paths must be JSON such as {_EXAMPLE}, got {text:.100}")
    if any(key.lower() in ("path", "brokername", "commitlogpath") for key in others):
        raise OptionError(
            "option paths names the brokers and their folders: leave out path, brokerName, commitLogPath"
        )
    return paths, others


class BrokerPartition(InputPartition):
    """One task of one broker's reader."""

    def __init__(self, broker_name: str, partition: InputPartition) -> None:
        self.value = partition
        self.broker_name = broker_name


class SeveralReaders(DataSourceReader):
    """The rows of several readers, one for each broker."""

    def __init__(self, readers: dict[str, DataSourceReader]) -> None:
        self._readers = readers

    def partitions(self) -> list[InputPartition]:
        return [
            BrokerPartition(name, partition)
            for name, reader in self._readers.items()
            for partition in reader.partitions()
        ]

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        if isinstance(partition, BrokerPartition):
            yield from self._readers[partition.broker_name].read(partition.value)


class LocatedStoreSource(StoreSource):
    """Format `rocketmq-store`: one store, or those of several brokers, in folders or behind URLs."""

    def schema(self) -> str:
        paths, others = read_paths(self.options)
        return self.schema_of(others if paths is None else {**others, "path": _LOCAL})

    def reader(self, schema: StructType) -> DataSourceReader:
        paths, others = read_paths(self.options)
        if paths is None:
            return _reader_of(others, schema)
        if read_store_options({**others, "path": _LOCAL}).table != MESSAGES:
            raise OptionError(
                f"option paths is for table={MESSAGES}: rows of other tables do not name their broker"
            )
        return SeveralReaders(
            {
                name: _reader_of({**others, "path": path, "brokerName": name}, schema)
                for name, path in paths.items()
            }
        )


def _reader_of(options: dict[str, str], schema: StructType) -> DataSourceReader:
    path = next((text for key, text in options.items() if key.lower() == "path"), "")
    return (
        RemoteStoreReader(path, options, schema)
        if is_url(path)
        else StoreReader(read_store_options(options), schema)
    )


class RemoteStoreReader(DataSourceReader):
    """Reads a store behind a URL. Each task reads a `StoreReader` over copies of its bytes."""

    def __init__(self, url: str, options: dict[str, str], schema: StructType) -> None:
        checked = read_store_options(options)
        if any(key.lower() in ("commitlogpath", "checkqueues") for key in options) or (
            checked.table == MESSAGES and checked.driver != "commitlog"
        ):
            raise OptionError(
                "option path: a URL is read with driver=commitlog, without commitLogPath and checkQueues"
            )
        self._url = url
        self._table = checked.table
        self._options = {key: text for key, text in options.items() if key.lower() != "path"}
        self._schema = schema

    def _reader(self, folder: Path) -> StoreReader:
        return StoreReader(read_store_options({**self._options, "path": str(folder)}), self._schema)

    def partitions(self) -> list[InputPartition]:
        if self._table == CONSUMER_OFFSETS:
            return [SplitPartition(None)]
        location = Location(self._url)
        with temporary_copies() as folder:
            copy_plan(location, folder)
            if not (folder / "commitlog").is_dir():
                raise OptionError(f"option path: {location.url} has no folder commitlog, and so is no store")
            with naming_originals(folder, location.url):
                return [_inside(partition, folder) for partition in self._reader(folder).partitions()]

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        if not isinstance(partition, SplitPartition):
            return
        location = Location(self._url)
        with temporary_copies() as folder, naming_originals(folder, location.url):
            split = partition.value
            if self._table == CONSUMER_OFFSETS:
                location.copy_whole("config/consumerOffset.json", folder)
            elif isinstance(split, LogSplit):
                file = split.file
                location.copy_split(
                    file.path, folder / file.path, split.begin, split.end, file.size, file.base
                )
            elif isinstance(split, QueueSplit):
                for name in location.sizes(split.folder):
                    location.copy_whole(name, folder)
            for batch in self._reader(folder).read(_below(partition, folder)):
                yield with_urls(batch, str(folder), location.url)


def _inside(partition: InputPartition, folder: Path) -> SplitPartition:
    """The partition with paths relative to the folder of copies, which only this process has."""
    return _moved(partition, lambda path: str(Path(path).relative_to(folder)))


def _below(partition: InputPartition, folder: Path) -> SplitPartition:
    """The partition with paths below a folder of copies."""
    return _moved(partition, lambda path: str(folder / path))


def _moved(partition: InputPartition, move: Any) -> SplitPartition:
    assert isinstance(partition, SplitPartition)
    split = partition.value
    if isinstance(split, LogSplit):
        split = msgspec.structs.replace(split, file=_moved_file(split.file, move))
    elif isinstance(split, QueueSplit):
        split = msgspec.structs.replace(split, folder=move(split.folder))
    hole_after = partition.hole_after
    return SplitPartition(split, None if hole_after is None else _moved_file(hole_after, move))


def _moved_file(file: LogFile, move: Any) -> LogFile:
    return msgspec.structs.replace(file, path=move(file.path))
