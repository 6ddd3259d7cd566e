"""Which engine runs a job, and what is the same on both."""

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pocketmq.pipeline.errors import OptionError, PipelineError
from pocketmq.pipeline.jobs.sql import engine as engines
from pocketmq.pipeline.jobs.sql.arrow_frame import frame_of_rows
from pocketmq.pipeline.jobs.sql.engine import DUCKDB, SPARK, choose_engine
from pocketmq.pipeline.jobs.sql.message_input import MessageInput, sql_text


@pytest.fixture(scope="module")
def duckdb() -> Any:
    pytest.importorskip("duckdb", reason="the extra pocketmq[tables] is not installed")
    from pocketmq.pipeline.jobs.sql.duckdb_engine import DuckEngine

    with DuckEngine() as engine:
        yield engine


@pytest.mark.parametrize(("chosen", "parent"), [(True, "chosen"), (False, "disk")])
def test_what_does_not_fit_into_memory_goes_to_a_disk_unless_a_folder_is_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, chosen: bool, parent: str
) -> None:
    """`/tmp` is often memory."""
    pytest.importorskip("duckdb", reason="the extra pocketmq[tables] is not installed")
    from pocketmq.pipeline.jobs.sql import duckdb_engine

    for name in ("chosen", "disk"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(duckdb_engine, "ON_DISK", str(tmp_path / "disk"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    if chosen:
        monkeypatch.setenv("TMPDIR", str(tmp_path / "chosen"))
    with duckdb_engine.DuckEngine():
        assert [path.parent.name for path in tmp_path.glob("*/*")] == [parent]
    assert list(tmp_path.glob("*/*")) == []


class FakeRows:
    """Rows of a Spark session that may be cached."""

    def __init__(self) -> None:
        self.is_cached = False

    def cache(self) -> "FakeRows":
        self.is_cached = True
        return self

    def unpersist(self) -> None:
        self.is_cached = False

    def createOrReplaceTempView(self, name: str) -> None:
        pass


class FakeSpark:
    def __init__(self) -> None:
        self.rows: list[FakeRows] = []

    def sql(self, text: str) -> FakeRows:
        self.rows.append(FakeRows())
        return self.rows[-1]


def test_a_job_on_spark_frees_what_it_keeps_at_its_end() -> None:
    """A Spark Connect server would keep it for ever."""
    pytest.importorskip("pyspark", reason="the extra pocketmq[spark] is not installed")
    from pocketmq.pipeline.jobs.sql.spark_engine import SparkEngine

    spark: Any = FakeSpark()
    with SparkEngine(spark) as engine:
        engine.keep("a", "select 1")
        engine.keep("b", "select 2")
        assert sum(rows.is_cached for rows in spark.rows) == 2
    assert not any(rows.is_cached for rows in spark.rows)


BOTH = frozenset({"duckdb", "pyspark", "pyarrow", "numpy"})


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(packages: frozenset[str]) -> None:
        monkeypatch.setattr(engines, "_has", packages.__contains__)

    install(BOTH)
    return install


def test_one_machine_is_duckdbs_and_a_master_is_sparks(installed: Any) -> None:
    assert choose_engine(None, is_spark=False) == DUCKDB
    assert choose_engine(None, is_spark=True) == SPARK
    assert choose_engine(SPARK, is_spark=False) == SPARK
    with pytest.raises(OptionError, match="--master and --conf are for --engine spark"):
        choose_engine(DUCKDB, is_spark=True)


def test_what_is_installed_decides_where_the_user_does_not(installed: Any) -> None:
    installed(BOTH - {"duckdb"})
    assert choose_engine(None, is_spark=False) == SPARK
    with pytest.raises(PipelineError, match=r"pip install 'pocketmq\[tables\]'"):
        choose_engine(DUCKDB, is_spark=False)
    installed(BOTH - {"pyspark"})
    assert choose_engine(None, is_spark=False) == DUCKDB
    with pytest.raises(PipelineError, match=r"pip install 'pocketmq\[spark\]'"):
        choose_engine(None, is_spark=True)
    installed(frozenset())
    with pytest.raises(PipelineError, match=r"pip install 'pocketmq\[tables\]'"):
        choose_engine(None, is_spark=False)


def test_texts_are_literals() -> None:
    assert sql_text("it's") == "'it''s'"
    assert sql_text("a\\b") == "unhex_text('615C62')"
    assert MessageInput(store="s").time_condition() == "true"


def test_a_frame_of_rows_is_written_as_parquet(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    frame = frame_of_rows({"a": pa.int32(), "b": pa.string()}, [(1, "x"), (2, None)])
    for _ in range(2):
        frame.write(str(tmp_path / "rows"), "overwrite")
    assert pq.read_table(tmp_path / "rows").to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert frame.rows() == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert frame_of_rows({"a": pa.int32()}, []).rows() == []


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=12) | st.text(max_size=6).map(str.encode), st.text(max_size=3))
@example(b"line1\nline2", "0A")
@example("Gr\u00fc\u00dfe".encode(), "C3")
@example(b"a\\b", "5C")
@example(b"\xab\xcd", "\xbc")
def test_a_text_is_found_in_a_body_where_its_bytes_are(duckdb: Any, body: bytes, text: str) -> None:
    (row,) = duckdb.sql(
        f"select has_bytes(from_hex('{body.hex()}'), decode(from_hex('{text.encode().hex()}'))) as found"
    ).rows()
    assert row["found"] is (text.encode() in body)


def test_the_sum_of_integers_is_an_integer(duckdb: Any) -> None:
    table = duckdb.sql("select sum(n) as n, sum(n) * 1.5 as m from (values (1), (2)) as t(n)").table
    assert table.schema.field("n").type == pa.int64()
    large = duckdb.sql("select sum(n) as n from (values (9223372036854775807), (1)) as t(n)")
    assert [int(row["n"]) for row in large.rows()] == [1 << 63]


def test_a_frame_shows_its_first_rows_and_makes_the_others_one_by_one() -> None:
    whole = frame_of_rows({"n": pa.int64()}, [(number,) for number in range(5000)])
    assert [row["n"] for row in whole.rows(3)] == [0, 1, 2]
    rows = whole.each()
    assert [next(rows)["n"] for _ in range(2000)] == list(range(2000))
