"""Jobs in SQL on DuckDB: statistics, find, and a query of one's own."""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.jobs.answers import find, stats
from pocketmq.pipeline.jobs.answers import sql as sql_job
from pocketmq.pipeline.jobs.sql.duckdb_engine import DuckEngine
from pocketmq.pipeline.jobs.sql.message_input import MessageInput
from pocketmq.testing import RocketMQ

from pipeline.commands import run, tables
from pipeline.jobs.reports import rows
from pipeline.store_files import overwrite
from pipeline.tables.stores import BEGIN_MS, COUNT, STEP_MS, message
from spark.planted_store import write_store as write_planted_store

# -- stats


def test_statistics_have_rates_shares_and_the_commonest_keys(engine: Any, store: Path) -> None:
    report = stats.build(engine, MessageInput(store=str(store)), keys=2)
    topics = {row["topic"]: row for row in rows(report, "topics")}
    assert round(topics["Orders"]["messagesPerSecond"], 2) == 0.03
    queues = [row for row in rows(report, "queues") if row["topic"] == "Bills"]
    assert [(row["queueId"], row["shareOfTopic"]) for row in queues] == [(0, 0.5), (2, 0.5)]
    assert [row["messages"] for row in rows(report, "keys")] == [1, 1]


def test_statistics_of_some_minutes(engine: Any, store: Path) -> None:
    source = MessageInput(store=str(store), since_ms=BEGIN_MS, until_ms=BEGIN_MS + 10 * STEP_MS)
    assert sum(row["messages"] for row in rows(stats.build(engine, source), "tags")) == 10


# -- find


def found(engine: Any, store: Path, **wanted: Any) -> list[str]:
    report = find.build(engine, MessageInput(store=str(store)), find.Wanted(**wanted))
    return [row["msgId"] for row in rows(report, "messages")]


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ({"message_id": f"{0xAB:032x}"}, [0xAB]),
        ({"text": "7B22"}, []),  # the digits of {"
        ({"tag": "B", "where": "queueOffset = 2 and topic = 'Orders'"}, [13, 9, 11]),
        ({"message_key": "all", "text": "599"}, [599]),
    ],
)
def test_messages_are_found(engine: Any, store: Path, wanted: dict[str, Any], numbers: list[int]) -> None:
    if "where" in wanted:
        assert {int(text, 16) for text in found(engine, store, **wanted)} <= set(range(1, 40, 2))
        return
    assert [int(text, 16) for text in found(engine, store, **wanted)] == numbers


def test_progress_is_that_of_the_table_also_where_nothing_is_found(store: Path, rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("far", queues=1)
    for number in range(3):
        rocketmq.send(topic, f"body {number}")
    for source in (
        MessageInput(store=str(store)),
        MessageInput(namesrv_addr=rocketmq.namesrv_addr, topics=topic),
    ):
        shares: list[float] = []
        with DuckEngine(progress=shares.append) as engine:
            find.build(engine, source, find.Wanted(text="no body has this"))
        assert shares == sorted(shares)
        assert shares[-1] == 1


class InterruptedTable:
    """A table at which Ctrl-C arrives while DuckDB reads it."""

    schema = pa.schema([("queueOffset", pa.int64())])
    progress = None

    def batches(self, names: Any, condition: Any) -> Iterator[Any]:
        yield pa.RecordBatch.from_pylist([{"queueOffset": 1}], schema=self.schema)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)


@pytest.mark.usefixtures("ctrl_c_as_on_a_terminal")
def test_ctrl_c_is_ctrl_c_and_not_an_error_of_the_query(engine: Any) -> None:
    engine._register("rows", InterruptedTable())
    with pytest.raises(KeyboardInterrupt):
        engine.sql("select max(queueOffset) from rows").rows()
    with pytest.raises(KeyboardInterrupt):
        engine.keep("kept", "select * from rows")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_offset_message_id_is_found(engine: Any, store: Path) -> None:
    engine.open_messages("m", MessageInput(store=str(store)), ())
    wanted = engine.sql("select offsetMsgId as id from m where keys = 'k5 all'").rows()[0]["id"]
    assert [int(text, 16) for text in found(engine, store, message_id=wanted.lower())] == [5]


def test_find_says_when_there_are_more(engine: Any, store: Path) -> None:
    report = find.build(engine, MessageInput(store=str(store)), find.Wanted(tag="A"), limit=3)
    assert report.lead.endswith("More than 3 messages match; --limit shows more.")
    assert [row["keys"] for row in rows(report, "messages")] == ["k0 all", "k2 all", "k4 all"]
    assert report.findings == ["3 messages found"]


# -- a query of one's own


def test_a_query_reads_all_tables_of_a_store(store: Path) -> None:
    text = (
        "select m.topic, count(*) as n, (select count(*) from consumequeue) as units, "
        '(select max("offset") from consumer_offsets) as most from messages m group by 1 order by 1'
    )
    ran = run("sql", text, "--store", str(store))
    assert ran.exit_code == 0, ran.output
    assert "Bills" in ran.output
    assert "600" in ran.output


def test_a_store_without_consume_queues_is_queried_and_its_queues_are_what_is_missing(
    store: Path, tmp_path: Path
) -> None:
    shutil.copytree(store / "commitlog", tmp_path / "log" / "commitlog")
    words = ("--store", str(tmp_path / "log"))
    ran = run("sql", "select count(*) as n from messages", *words)
    assert (ran.exit_code, "600" in ran.output) == (0, True), ran.output
    ran = run("sql", "select count(*) as n from messages, consumequeue", *words)
    assert ran.exit_code == 2
    assert ran.output == (
        f"pocketmq: {tmp_path}/log/consumequeue is not a folder; table consumequeue needs the consume queues\n"
    )


def test_a_query_writes_json(store: Path, tmp_path: Path) -> None:
    found = tables(tmp_path, "sql", "select min(storeTimestamp) as t from messages", "--store", str(store))
    assert found["rows"] == [{"t": "2023-11-14T22:13:20+00:00"}]


def test_a_wrong_query_is_one_line(store: Path) -> None:
    ran = run("sql", "select colour from messages", "--store", str(store))
    assert ran.exit_code == 2
    assert ran.output.startswith("pocketmq: SQL: Binder Error")
    assert len(ran.output.splitlines()) == 1


def test_a_job_that_meets_damage_names_the_job_that_lists_it(tmp_path: Path) -> None:
    path = write_planted_store(tmp_path) / "commitlog" / f"{0:020}"
    overwrite(path, 4, b"????")
    ran = run("stats", "--store", str(tmp_path))
    assert (ran.exit_code, ran.output) == (
        2,
        f"pocketmq: {path} at byte 0 (log position 0): bad magic; pocketmq pipeline audit lists all damage\n",
    )


def test_a_query_of_damage(engine: Any, tmp_path: Path) -> None:
    source = MessageInput(store=str(write_planted_store(tmp_path / "store")))
    text = "select status, count(*) as n from messages group by 1 order by 1"
    report = sql_job.build(engine, text, source, shows_damage=True)
    assert rows(report, "rows") == [{"status": "bad crc", "n": 1}, {"status": "ok", "n": 79}]


@pytest.mark.parametrize(
    ("words", "output"),
    [
        ("find --store {0}", "say what to find: --key, --id, --tag, --text, --where, --since or --until"),
        ("find --store {0} --key k --where nonsense(", "SQL: Parser Error"),
        ("stats --store {0} --engine duckdb --master local[2]", "--master and --conf are for --engine spark"),
        ("stats --store {0} --since 99999999999999999", "from 1970 to 9999, got '99999999999999999'"),
        ("stats --store {0} --since 1960-01-01", "from 1970 to 9999, got '1960-01-01'"),
        ("stats --store {0} --parquet nothing://x", "--parquet: nothing://x cannot be opened"),
        ("sql begin --store {0}", "SQL: the text must be a query that has rows"),
        ("sql select --journal {0}/nosuch", "pocketmq: --journal: {0}/nosuch is not a journal"),
        ("latency --journal {0}/nosuch", "pocketmq: --journal: {0}/nosuch is not a journal"),
        ("stats --store {0} --topics ,", "--topics must name a topic, got ','"),
        ("stats -n 127.0.0.1:1 --topics ,", "--topics must name a topic, got ','"),
        (
            "compare {0} nosuch",
            "RIGHT must be the folder of a store, or name servers as host:port, got 'nosuch'",
        ),
        ("latest --store {0} --by foo(", "--by foo(: SQL: Parser Error"),
        ("find --store {0} --where colour=1", "--where colour=1: SQL: Binder Error"),
    ],
)
def test_what_the_user_can_correct_is_one_line_and_code_2(store: Path, words: str, output: str) -> None:
    ran = run(*(word.format(store) for word in words.split()))
    assert ran.exit_code == 2, ran.output
    assert output.format(store) in ran.output


def test_a_job_without_an_engine_says_that_options_of_spark_have_no_effect(store: Path) -> None:
    ran = run("lag", "--store", str(store), "--master", "local[2]", "--quiet")
    assert (ran.exit_code, ran.output) == (0, "pocketmq: lag needs no engine: no effect of --master\n")


def test_a_topic_that_a_store_does_not_have_is_named(store: Path) -> None:
    ran = run("audit", "--store", str(store), "--topics", "Orders,Odres", "--quiet")
    assert (ran.exit_code, ran.output) == (0, f"pocketmq: {store} has no topic Odres; did you mean Orders?\n")


def test_tables_are_written_to_a_url(store: Path, tmp_path: Path) -> None:
    ran = run("stats", "--store", str(store), "--parquet", f"file://{tmp_path}/out", "--quiet")
    assert ran.exit_code == 0, ran.output
    rows_written = pq.read_table(tmp_path / "out" / "topics").to_pylist()
    assert {row["topic"]: row["messages"] for row in rows_written} == {
        "Orders": COUNT - COUNT // 10,
        "Bills": COUNT // 10,
    }


def test_statistics_of_a_store_are_counted_inside_the_scan(engine: Any, store: Path) -> None:
    """The same tables as from the messages themselves, which a time that cuts nothing asks for."""
    source = MessageInput(store=str(store))
    scanned = stats.build(engine, source)
    with pytest.raises(OptionError, match="messages"):
        engine.sql("select * from messages").rows()  # no message was handed over
    before = {name: rows(scanned, name) for name in ("topics", "minutes", "queues", "tags")}
    read = stats.build(engine, MessageInput(store=str(store), since_ms=0))
    assert {name: rows(read, name) for name in before} == before


@pytest.mark.parametrize("job", ["stats", "duplicates", "latest"])
def test_a_topic_that_no_broker_has_is_one_short_line(rocketmq: RocketMQ, job: str) -> None:
    ran = run(job, "-n", rocketmq.namesrv_addr, "--topics", "Nope")
    assert (ran.exit_code, ran.output) == (2, "pocketmq: topic Nope does not exist on any broker\n")


def test_a_message_is_exit_code_1_and_its_body_is_shown_as_text(store: Path) -> None:
    ran = run("find", "--store", str(store), "--key", "k5")
    assert (ran.exit_code, message(5)["body"].decode() in ran.output) == (1, True)
    assert run("find", "--store", str(store), "--key", "nobody").exit_code == 0


def test_times_on_the_command_line(store: Path) -> None:
    ran = run("find", "--store", str(store), "--since", "2023-11-15T03:00:00", "--until", "1700017500000")
    assert ran.exit_code == 1, ran.output
    assert run("find", "--store", str(store), "--since", "noon").exit_code == 2
