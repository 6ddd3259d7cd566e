"""pocketmq.pipeline: topics, stores and journals as Spark data frames and Arrow tables, and the jobs that read them.

    from pocketmq.pipeline import pocketmq_session

The names that users need are imported from here and loaded on first use. The formats `rocketmq`, `rocketmq-store` and
`pocketmq-journal` are described in docs/pipeline.md, tables without a JVM in docs/tables.md, the jobs in docs/jobs.md.
The extras are `pocketmq[tables]` and `pocketmq[spark]`. Rooms, bottom up:

    errors.py     the errors, by what the user can do about them
    records/      stored records and Arrow arrays, both ways
    planning/     options, positions and ranges
    files/        files of a store and journals
    brokers/      requests to brokers, and sends
    tables/       stores, topics and journals as Arrow tables, for DuckDB, Polars and pandas
    sql/          questions in SQL, on DuckDB or on Spark
    sink/         data frames as messages
    sources/      the Spark readers of the three formats
    session/      Java, settings, registration, progress
    report/       tables on a terminal, pages of HTML
    jobs/         audit, duplicates, stats, find, sql, latest, compare, lag
    behaviour/    what clients really did, and latency
    moving/       dlq, replay, export, ingest, mirror: jobs that send messages or write tables
    formats/      the modules by which Spark finds the formats

pyspark is imported in sources, sink, session, sql, jobs and moving only, duckdb in sql only.
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
    from .session.metrics import StreamMetrics, measured
    from .session.progress import commit_progress
    from .session.session import pocketmq_session, register

_NAMES = {
    "errors": "CheckpointError CorruptStoreError DataLossError GroupInUse JournalError NoJavaError OptionError "
    "PipelineError SendError SourceUnreachable",
    "session.metrics": "StreamMetrics measured",
    "session.progress": "commit_progress",
    "session.session": "pocketmq_session register",
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
