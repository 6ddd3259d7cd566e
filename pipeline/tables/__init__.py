"""Stores, topics and journals as Arrow tables, without a JVM: DuckDB, Polars and pandas read them.

    from pocketmq.pipeline.tables import open_store
    duckdb.sql("select topic, count(*) from messages group by 1")     with messages = open_store("./my-store")

readers.py          open_store, open_topic, open_journal; the same as datasets
dataset.py          a table as a `pyarrow.dataset.Dataset`
call_options.py     keyword options of a call, and errors in its words
conditions.py       filters and times, and what they rule out before anything is read
store_table.py      messages of stores, as tasks
other_tables.py     runs, statistics, units and offsets of stores
topic_table.py      messages of running brokers, pulled by a thread
remote_store.py     stores behind a URL, as the tables of a folder
journal_table.py    entries of journals
tasks.py            tables of tasks, read by several threads

Needs numpy and pyarrow (the extra `pocketmq[tables]`).
"""

TYPE_CHECKING = False  # as in `typing`, which costs more to import than this file
if TYPE_CHECKING:
    from .readers import journal_dataset as journal_dataset
    from .readers import open_journal as open_journal
    from .readers import open_store as open_store
    from .readers import open_topic as open_topic
    from .readers import store_dataset as store_dataset
    from .readers import topic_dataset as topic_dataset

__all__ = ["journal_dataset", "open_journal", "open_store", "open_topic", "store_dataset", "topic_dataset"]


def __getattr__(name: str) -> object:
    """Load a name on its first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import readers

    value: object = getattr(readers, name)
    globals()[name] = value
    return value
