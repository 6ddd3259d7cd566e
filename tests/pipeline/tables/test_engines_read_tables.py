"""DuckDB, Polars and pandas read the tables; DuckDB pushes columns and conditions into a dataset."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.compute as pc
import pytest
from pocketmq.pipeline.tables import open_store, store_dataset
from pocketmq.pipeline.tables.arrow.dataset import TableDataset
from pocketmq.pipeline.tables.arrow.readers import store_table

from pipeline.tables.stores import COUNT, write_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("engines") / "store")


class Recorded:
    """A table that remembers what it was asked for."""

    def __init__(self, table: Any) -> None:
        self.schema = table.schema
        self.asked: list[tuple[list[str], str]] = []
        self._table = table

    def batches(self, names: Any, condition: Any) -> Any:
        self.asked.append((list(names), str(condition)))
        return self._table.batches(names, condition)


def test_duckdb_reads_a_reader(store: Path) -> None:
    messages = open_store(store)
    found = duckdb.sql("select topic, count(*) from messages group by 1 order by 1").fetchall()
    assert found == [("Bills", COUNT // 10), ("Orders", COUNT - COUNT // 10)]
    assert messages is not None


def test_duckdb_asks_a_dataset_for_what_a_query_needs(store: Path) -> None:
    table = Recorded(store_table(store))
    connection = duckdb.connect()
    connection.register("messages", TableDataset(table))
    query = "select max(queueOffset) from messages where topic = 'Bills' and queueId = 2"
    assert connection.execute(query).fetchall() == [(29,)]
    ((names, condition),) = table.asked
    assert set(names) <= {"queueOffset", "topic", "queueId"}
    assert 'topic == "Bills"' in condition
    assert connection.execute("select count(*) from messages a join messages b using (msgId)").fetchall() == [
        (COUNT,)
    ]


def test_polars_pushes_columns_and_conditions(store: Path) -> None:
    polars: Any = pytest.importorskip("polars")
    found = (
        polars.scan_pyarrow_dataset(store_dataset(store))
        .filter(polars.col("tags") == "A")
        .select("keys")
        .collect()
    )
    assert found.height == COUNT // 2


def test_pandas_reads_a_reader(store: Path) -> None:
    pandas: Any = pytest.importorskip("pandas")
    frame = open_store(store, columns=["topic", "queueId"]).read_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == COUNT


def test_expressions_are_computed_of_the_columns_that_they_need(store: Path) -> None:
    scanner = store_dataset(store).scanner(
        columns={"twice": pc.field("queueOffset") * 2, "tags": pc.field("tags")},
        filter=pc.field("queueId") == 1,
    )
    rows = scanner.to_table()
    assert rows.schema.names == scanner.projected_schema.names == ["twice", "tags"]
    assert rows.num_rows == COUNT // 4
    offsets = store_dataset(store).to_table(columns=["queueOffset"], filter=pc.field("queueId") == 1)
    assert rows.column("twice").to_pylist() == [
        2 * value for value in offsets.column("queueOffset").to_pylist()
    ]


def test_a_dataset_of_a_condition_has_the_rows_that_meet_it(store: Path) -> None:
    bills = store_dataset(store).filter(pc.field("topic") == "Bills")
    assert bills.count_rows() == COUNT // 10
    assert bills.filter(pc.field("queueId") == 2).count_rows() == COUNT // 20
    assert pickle.loads(pickle.dumps(bills)).to_table(columns=["topic"]).num_rows == COUNT // 10
    offsets = bills.sort_by([("queueOffset", "descending")]).to_table(columns=["queueOffset"])
    assert offsets.column(0)[0].as_py() == COUNT // 20 - 1


def test_whatever_a_program_calls_of_a_dataset_the_interpreter_lives(store: Path) -> None:
    """The base class calls a C++ object that this dataset does not have."""
    program = """
import sys
import pyarrow.dataset as ds
from pocketmq.pipeline.tables import store_dataset
dataset = store_dataset(sys.argv[1])
for name in [name for name in dir(ds.Dataset) if not name.startswith("_")]:
    for arguments in ((), (dataset,), ("topic",), (dataset, "topic"), ([0],)):
        try:
            found = getattr(dataset, name)
            found(*arguments) if callable(found) else None
        except Exception as error:
            if "NoneType" in str(error):
                print(name, arguments, error)
print("alive")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, str(store)], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (0, "alive\n"), ended.stderr


LEFT: dict[str, str] = {
    "a reader": "rows = open_store(store, threads=2); rows.read_next_batch()",
    "a scanner": "rows = store_dataset(store).scanner(columns=['tags']).to_batches(); next(rows)",
    "expressions": "rows = store_dataset(store).scanner(columns={'x': pc.field('tags')}).to_batches(); next(rows)",
    "a query": "messages = store_dataset(store); rows = duckdb.execute('select msgId from messages'); rows.fetchone()",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", LEFT)
def test_a_program_that_leaves_rows_unread_ends_cleanly(tmp_path: Path, what: str) -> None:
    """A thread that still reads when the program ends would abort the process."""
    store = write_store(tmp_path / "store", 6000)
    program = f"""
import sys, duckdb
import pyarrow.compute as pc
from pocketmq.pipeline.tables import open_store, store_dataset
store = sys.argv[1]
{LEFT[what]}
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, str(store)], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")
