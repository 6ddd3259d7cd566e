"""Stores, topics and journals as Arrow tables, without a JVM: DuckDB, Polars and pandas read them. No Spark.

    from pocketmq.pipeline.tables import open_store
    duckdb.sql("select topic, count(*) from messages group by 1")     with messages = open_store("./my-store")

    records/    stored records and Arrow arrays, both ways
    planning/   options, positions and ranges
    files/      files of a store and journals
    brokers/    requests to brokers, and sends
    arrow/      the tables

Needs numpy and pyarrow (the extra `pocketmq[tables]`).
"""

TYPE_CHECKING = False  # as in `typing`, which costs more to import than this file
if TYPE_CHECKING:
    from .arrow.readers import journal_dataset as journal_dataset
    from .arrow.readers import open_journal as open_journal
    from .arrow.readers import open_store as open_store
    from .arrow.readers import open_topic as open_topic
    from .arrow.readers import store_dataset as store_dataset
    from .arrow.readers import topic_dataset as topic_dataset

__all__ = ["journal_dataset", "open_journal", "open_store", "open_topic", "store_dataset", "topic_dataset"]


def __getattr__(name: str) -> object:
    """Load a name on its first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .arrow import readers

    value: object = getattr(readers, name)
    globals()[name] = value
    return value
