"""The data source `rocketmq-store`: store directories, ours or of the official broker, scanned in parallel.

    spark.read.format("rocketmq-store").load("/path/to/store")

`table` is `messages` (the default), `runs` or `stats` (aggregates of them), `consumequeue` or `consumerOffsets`. With
`driver=commitlog` messages are read in the order of the commit log, split at any byte. With `driver=consumequeue` they
are read in the order of the queues, and nothing of other topics is read; messages that no queue has follow. No broker
is needed, and a running one is not disturbed: files are only read.
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from pocketmq.protocol.message.record import MIN_RECORD_BYTES
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ..errors import CorruptStoreError, OptionError, PathError
from ..files.aggregates import damage_row, scan_runs, scan_statistics
from ..files.consume_queues import (
    QueueSplit,
    known_log_end,
    queue_splits,
)
from ..files.log_files import LogFile, LogSplit, log_files, log_holes, log_splits, splits_after
from ..files.queue_check import check_units
from ..files.queue_index import FoundRecords, find_uncovered, read_found
from ..files.scan import (
    FAIL,
    REPORT,
    SKIP,
    ScannedRecords,
    ScanOptions,
    scan_log,
    scan_queue,
)
from ..files.store_rows import column_of, consumer_offset_rows, hole_after, unit_rows
from ..planning.option_values import OptionValues, canonical_options, plain_options
from ..planning.parallelism import default_parallelism
from ..planning.worker_memory import exempt_loaded_modules
from ..records.columns import (
    CONSUME_QUEUE_COLUMNS,
    CONSUMER_OFFSET_COLUMNS,
    RUN_COLUMNS,
    STATISTIC_COLUMNS,
    STORE_COLUMNS,
    ddl,
)
from .default_columns import default_columns
from .output_schema import OutputSchema

_log = logging.getLogger("pocketmq.pipeline")

MESSAGES, CONSUME_QUEUE, CONSUMER_OFFSETS = "messages", "consumequeue", "consumerOffsets"
COMMIT_LOG: Final = "commitlog"
RUNS, STATISTICS = "runs", "stats"
TABLES: Final = {
    MESSAGES: STORE_COLUMNS,
    RUNS: RUN_COLUMNS,
    STATISTICS: STATISTIC_COLUMNS,
    CONSUME_QUEUE: CONSUME_QUEUE_COLUMNS,
    CONSUMER_OFFSETS: CONSUMER_OFFSET_COLUMNS,
}
DAMAGE_COLUMNS: Final = ("physicalOffset", "file", "status")
"""The columns that tell damage: part of the lean columns with `onCorrupt=report`."""
DECODE_ROWS: Final = 16_384
"""Records of a batch: with fewer, the JVM and its Python workers wait for one another more often."""
LEAST_UNITS: Final = 1000
"""Units of a task of `driver=consumequeue`: fewer take less time than Spark needs to start a task."""
UNIT_ROWS: Final = 4_000_000
"""Units of a queue that one task reads: 80 MB."""
_NAMES: Final = (
    *("path", "commitLogPath", "table", "topics", "splitBytes", "driver", "onCorrupt"),
    *("verifyCrc", "decompress", "decodeRows", "brokerName", "minPartitions"),
    *("columns", "includeProperties", "checkQueues"),
)


class StoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """All options of a store reader; picklable."""

    root: str
    log_folder: str
    table: str
    split_bytes: int
    driver: str
    min_partitions: int
    checks_queues: bool
    scan: ScanOptions


def read_store_options(options: dict[str, str]) -> StoreOptions:
    """`OptionError` with one clear line for anything wrong."""
    values = OptionValues(canonical_options(options, _NAMES, {}))
    root = values.required("path", "/path/to/store")
    on_corrupt = values.choice("onCorrupt", FAIL, (FAIL, SKIP, REPORT))
    topics = (part.strip() for part in (values.text("topics") or "").split(","))
    table = values.choice("table", MESSAGES, tuple(TABLES))
    checks_queues = values.flag("checkQueues", False)
    if checks_queues and table != RUNS:
        raise OptionError(f"option checkQueues is for table={RUNS}, got table={table}")
    driver = values.choice("driver", COMMIT_LOG, (COMMIT_LOG, CONSUME_QUEUE))
    if driver != COMMIT_LOG and table in (RUNS, STATISTICS):
        raise OptionError(f"option driver must be {COMMIT_LOG} for table={table}, got {driver}")
    scan = ScanOptions(
        topics=frozenset(topic for topic in topics if topic),
        on_corrupt=on_corrupt,
        verifies_crc=values.flag("verifyCrc", on_corrupt == REPORT),
        decompresses=values.flag("decompress", True),
        decode_rows=values.integer("decodeRows", DECODE_ROWS, most=1 << 20),
        broker_name=values.text("brokerName"),
    )
    return StoreOptions(
        root=root,
        log_folder=values.text("commitLogPath") or str(Path(root) / "commitlog"),
        table=table,
        split_bytes=values.integer("splitBytes", 128 * 1024 * 1024),
        driver=driver,
        min_partitions=values.integer("minPartitions", 0, least=0),
        checks_queues=checks_queues,
        scan=scan,
    )


class StoreSource(DataSource):
    """Format `rocketmq-store`."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq-store"

    def schema(self) -> str:
        return self.schema_of(plain_options(self.options))

    @staticmethod
    def schema_of(texts: dict[str, str]) -> str:
        """The columns of the table that the options name."""
        exempt_loaded_modules()
        options = read_store_options(texts)
        if options.table != MESSAGES:
            return ddl(TABLES[options.table])
        always = DAMAGE_COLUMNS if options.scan.on_corrupt == REPORT else ()
        return ddl(default_columns(texts, STORE_COLUMNS, always))

    def reader(self, schema: StructType) -> DataSourceReader:
        return StoreReader(read_store_options(plain_options(self.options)), schema)


Split = LogSplit | QueueSplit | FoundRecords


class SplitPartition(InputPartition):
    """One task: a split, or the file before a hole. Without both, the offset table."""

    def __init__(self, split: Split | None, hole_after: LogFile | None = None) -> None:
        self.value = split
        self.hole_after = hole_after


class StoreReader(DataSourceReader):
    """Reads one table of a store."""

    def __init__(self, options: StoreOptions, schema: StructType) -> None:
        self._output = OutputSchema(schema, TABLES[options.table])
        self._options = options

    def partitions(self) -> list[InputPartition]:
        exempt_loaded_modules()
        options = self._options
        if options.table == CONSUMER_OFFSETS:
            return [SplitPartition(None)]
        files = log_files(Path(options.log_folder))
        queues_root = Path(options.root) / "consumequeue"
        if CONSUME_QUEUE in (options.table, options.driver) and files and not queues_root.is_dir():
            by_table = options.table == CONSUME_QUEUE
            reason = "table=consumequeue needs it" if by_table else "driver=commitlog reads without it"
            raise PathError(f"{queues_root} is not a folder; {reason}")
        if options.table == CONSUME_QUEUE:
            return [
                SplitPartition(split) for split in queue_splits(queues_root, options.scan.topics, UNIT_ROWS)
            ]
        holes = self._holes(files)
        queues = queue_splits(queues_root, frozenset(), UNIT_ROWS)
        known_end = known_log_end(queues)
        least = options.min_partitions or default_parallelism()
        of_log = log_splits(files, options.split_bytes, least, known_end)
        if options.driver == CONSUME_QUEUE:
            lost = find_uncovered(queues_root, files, queues, options.scan.topics, known_end)
            if lost is not None:
                of_queues = queue_splits(queues_root, options.scan.topics, self._rows_of_a_split(files))
                rest: list[Split] = [*lost, *splits_after(of_log, known_end)]
                return [
                    *holes,
                    *(SplitPartition(split) for split in of_queues),
                    *(SplitPartition(split) for split in rest),
                ]
            _log.warning(
                "%s: consume queues and log do not match: read in the order of the log", options.root
            )
        splits: list[Split] = [*of_log]
        if options.checks_queues:
            splits += [queue for queue in queues if self._is_wanted(queue.topic)]
        return [*holes, *(SplitPartition(split) for split in splits)]

    def _rows_of_a_split(self, files: list[LogFile]) -> int:
        """Units of about `splitBytes` of records, by the mean of the log."""
        queues = queue_splits(Path(self._options.root) / "consumequeue", frozenset())
        count = sum(queue.hi - queue.lo for queue in queues)
        known = known_log_end(queues) - min((file.base for file in files), default=0)
        mean = max(known // count, MIN_RECORD_BYTES) if count and known > 0 else MIN_RECORD_BYTES
        return max(self._options.split_bytes // mean, LEAST_UNITS)

    def _is_wanted(self, topic: str) -> bool:
        return not self._options.scan.topics or topic in self._options.scan.topics

    def _holes(self, files: list[LogFile]) -> list[SplitPartition]:
        """Missing bytes between two files, which the scan of neither file would notice.

        `CorruptStoreError` if `onCorrupt` is fail.
        """
        partitions = []
        for file, size in log_holes(files):
            damage = f"{file.path}: {size} bytes of the log are missing after it"
            if self._options.scan.on_corrupt == FAIL:
                raise CorruptStoreError(
                    f"{damage}; onCorrupt=skip continues, onCorrupt=report makes a row of it"
                )
            if self._options.scan.on_corrupt == SKIP:
                _log.warning("skipped: %s", damage)
            else:
                partitions.append(SplitPartition(None, file))
        return partitions

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        if not isinstance(partition, SplitPartition):
            return  # planning found nothing to read, and Spark made an empty task of its own
        exempt_loaded_modules()
        split = partition.value
        if self._options.table == CONSUMER_OFFSETS:
            rows = consumer_offset_rows(Path(self._options.root) / "config" / "consumerOffset.json")
            if rows.num_rows:
                yield self._chosen(rows)
        elif split is None:
            assert partition.hole_after is not None
            hole = hole_after(partition.hole_after)
            if self._options.table == MESSAGES:
                yield self._batch(hole)
            elif self._options.table == RUNS:
                yield self._chosen(damage_row(hole))
        elif self._options.table in (RUNS, STATISTICS):
            yield from map(self._chosen, self._aggregates(split))
        elif isinstance(split, FoundRecords):
            yield from map(self._batch, read_found(split, self._options.scan))
        elif isinstance(split, LogSplit):
            yield from map(self._batch, scan_log(split, self._options.scan))
        elif self._options.table == CONSUME_QUEUE:
            yield from map(self._chosen, unit_rows(split))
        else:
            files = log_files(Path(self._options.log_folder))  # not of the plan: a large store has a thousand
            yield from map(self._batch, scan_queue(split, files, self._options.scan))

    # -- rows

    def _batch(self, found: ScannedRecords) -> Any:
        return self._output.batch([column_of(found, name) for name in self._output.names])

    def _aggregates(self, split: Split) -> Iterator[Any]:
        options = self._options
        if isinstance(split, QueueSplit):
            return check_units(split, options.log_folder)
        assert isinstance(split, LogSplit)
        if options.table == STATISTICS:
            return scan_statistics(split, options.scan, self._output.names)
        return scan_runs(split, options.scan, root=options.root if options.checks_queues else None)

    def _chosen(self, batch: Any) -> Any:
        return self._output.batch([batch.column(name) for name in self._output.names])
