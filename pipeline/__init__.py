"""pocketmq.pipeline: topics, stores and journals as Spark data frames and Arrow tables, and the jobs that read them.

    from pocketmq.pipeline import pocketmq_session

The names that users need are imported from here and loaded on first use. The formats `rocketmq`, `rocketmq-store` and
`pocketmq-journal` are described in docs/pipeline.md, tables without a JVM in docs/tables.md, the jobs in docs/jobs.md.
The extras are `pocketmq[tables]` and `pocketmq[spark]`. Rooms, bottom up:

    errors.py     the errors, by what the user can do about them
    tables/       stores, topics and journals as Arrow tables, for DuckDB, Polars and pandas; what all others read by
    spark/        the Spark readers and writers of the three formats, and a session
    jobs/         audit, stats, find, sql, compare, mirror and the others
    formats/      the modules by which Spark finds the formats

pyspark is imported in spark, and on use in jobs; duckdb in jobs/sql only.
"""

TYPE_CHECKING = False  # as in `typing`, which costs more to import than this file
if TYPE_CHECKING:
    from .errors import (
        CheckpointError,
        CorruptStoreError,
        DataLossError,
        GroupInUse,
        JournalError,
        NoJavaError,
        OptionError,
        PipelineError,
        SendError,
        SourceUnreachable,
    )
    from .spark.session.metrics import StreamMetrics, measured
    from .spark.session.progress import commit_progress
    from .spark.session.session import pocketmq_session, register

_NAMES = {
    "errors": "CheckpointError CorruptStoreError DataLossError GroupInUse JournalError NoJavaError OptionError "
    "PipelineError SendError SourceUnreachable",
    "spark.session.metrics": "StreamMetrics measured",
    "spark.session.progress": "commit_progress",
    "spark.session.session": "pocketmq_session register",
}
"""Each file and the names that are defined in it."""
_FILE_OF = {name: file for file, names in _NAMES.items() for name in names.split()}

__all__ = [
    "CheckpointError", "CorruptStoreError", "DataLossError", "GroupInUse", "JournalError", "NoJavaError",
    "OptionError", "PipelineError", "SendError", "SourceUnreachable", "StreamMetrics", "commit_progress",
    "measured", "pocketmq_session", "register",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Load a name on its first use (PEP 562)."""
    file = _FILE_OF.get(name)
    if file is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{file}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
