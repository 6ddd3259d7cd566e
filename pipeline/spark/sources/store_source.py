"""The data source `rocketmq-store`: store directories, ours or of the official broker, scanned in parallel.

    spark.read.format("rocketmq-store").load("/path/to/store")

`table` is `messages` (the default), `runs` or `stats` (aggregates of them), `consumequeue` or `consumerOffsets`. With
`driver=commitlog` messages are read in the order of the commit log, split at any byte. With `driver=consumequeue` they
are read in the order of the queues, and nothing of other topics is read; messages that no queue has follow. No broker
is needed, and a running one is not disturbed: files are only read.
"""

from typing import Any, Final

import msgspec
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from ...errors import OptionError
from ...tables.arrow.readers import CONSUME_QUEUE, MESSAGES, RUNS, STATISTICS, STORE_TABLES, task_table
from ...tables.arrow.store_table import Cut
from ...tables.files.locations import is_url
from ...tables.files.scan import FAIL, REPORT, SKIP
from ...tables.planning.option_values import OptionValues, canonical_options, names_in
from ...tables.planning.spark_processes import default_parallelism, freeze_imports
from ...tables.records.columns import STORE_COLUMNS, ddl
from .default_columns import default_columns
from .task_reader import FilteringTaskReader, TaskReader, read_paths

COMMIT_LOG: Final = "commitlog"
DAMAGE_COLUMNS: Final = ("physicalOffset", "file", "status")
"""The columns that tell damage: part of the lean columns with `onCorrupt=report`."""
DECODE_ROWS: Final = 16_384
"""Records of a batch: with fewer, the JVM and its Python workers wait for one another more often."""
_NAMES: Final = (
    *("path", "table", "topics", "driver", "splitBytes", "minPartitions", "pushdown", "onCorrupt"),
    *("verifyCrc", "checkQueues", "columns", "includeProperties", "decompress", "decodeRows"),
    *("commitLogPath", "brokerName"),
)
"""In the order of docs/pipeline.md, which says what each of them means."""


class StoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the options say, in the words of `tables`."""

    path: str
    table: str
    cut: Cut
    pushes_down: bool
    of_table: dict[str, Any]
    """Options of the table."""


def read_store_options(options: dict[str, str]) -> StoreOptions:
    """`OptionError` with one clear line for anything wrong."""
    values = OptionValues(canonical_options(options, _NAMES, {}))
    path = values.required("path", "/path/to/store")
    on_corrupt = values.choice("onCorrupt", FAIL, (FAIL, SKIP, REPORT))
    table = values.choice("table", MESSAGES, tuple(STORE_TABLES))
    checks_queues = values.flag("checkQueues", False)
    if checks_queues and table != RUNS:
        raise OptionError("option checkQueues", f"is for table={RUNS}, got table={table}")
    driver = values.choice("driver", COMMIT_LOG, (COMMIT_LOG, CONSUME_QUEUE))
    if driver != COMMIT_LOG and table in (RUNS, STATISTICS):
        raise OptionError("option driver", f"must be {COMMIT_LOG} for table={table}, got {driver}")
    log_path = values.text("commitLogPath")
    if is_url(path) and (driver != COMMIT_LOG or log_path or checks_queues):
        raise OptionError(
            "option path", ": a URL is read with driver=commitlog, without commitLogPath and checkQueues"
        )
    of_table: dict[str, Any] = {
        "topics": names_in(values.text("topics")) or None,
        "on_corrupt": on_corrupt,
        "verify_crc": values.flag("verifyCrc", on_corrupt == REPORT),
        "decompress": values.flag("decompress", True),
        "decode_rows": values.integer("decodeRows", DECODE_ROWS, most=1 << 20),
        "broker_name": values.text("brokerName"),
        "commit_log_path": log_path,
        "check_queues": checks_queues,
    }
    cut = Cut(
        split_bytes=values.integer("splitBytes", 128 * 1024 * 1024),
        min_tasks=values.integer("minPartitions", 0, least=0) or default_parallelism(),
        by_queue=driver == CONSUME_QUEUE,
    )
    pushes_down = values.flag("pushdown", False)
    return StoreOptions(path=path, table=table, cut=cut, pushes_down=pushes_down, of_table=of_table)


class StoreSource(DataSource):
    """Format `rocketmq-store`: one store, or those of several brokers, in folders or behind URLs."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq-store"

    def schema(self) -> str:
        """The columns of the table that the options name."""
        freeze_imports()
        _, texts = self._locations()
        options = read_store_options(texts)
        if options.table != MESSAGES:
            return ddl(STORE_TABLES[options.table])
        always = DAMAGE_COLUMNS if options.of_table["on_corrupt"] == REPORT else ()
        return ddl(default_columns(texts, STORE_COLUMNS, always))

    def reader(self, schema: StructType) -> DataSourceReader:
        paths, texts = self._locations()
        options = read_store_options(texts)
        if paths is not None and options.table != MESSAGES:
            raise OptionError(
                "option paths", f"is for table={MESSAGES}: rows of other tables do not name their broker"
            )
        table = task_table(paths or options.path, options.table, cut=options.cut, **options.of_table)
        kind = FilteringTaskReader if options.pushes_down else TaskReader
        return kind(table, schema, STORE_TABLES[options.table])

    def _locations(self) -> tuple[dict[str, str] | None, dict[str, str]]:
        """(location of each broker, or None for one store; the other options, with a path in any case)."""
        paths, others = read_paths(self.options)
        return paths, others if paths is None else {**others, "path": next(iter(paths.values()))}
