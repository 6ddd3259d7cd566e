"""A store as an Arrow reader: every column and filter, and what is not read at all."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.pipeline.errors import CorruptStoreError, OptionError
from pocketmq.pipeline.tables import open_store, store_dataset
from pocketmq.pipeline.tables.arrow.conditions import condition_of
from pocketmq.pipeline.tables.arrow.readers import MESSAGES, task_table
from pocketmq.pipeline.tables.arrow.store_table import LogTask, ScanTask
from pocketmq.pipeline.tables.records.columns import LEAN_COLUMNS, STORE_COLUMNS

from pipeline.store_files import overwrite
from pipeline.tables import stores
from pipeline.tables.stores import BEGIN_MS, COUNT, FILE_BYTES, STEP_MS, message, write_store

NUMBERS = list(range(COUNT))
HALF = datetime.fromtimestamp((BEGIN_MS + COUNT // 2 * STEP_MS) // 60_000 * 60, UTC)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("tables") / "store")


def numbers(reader: Any) -> list[int]:
    """The numbers of the messages, read from their ids."""
    return [int(text, 16) for text in reader.read_all().column("msgId").to_pylist()]


def tasks(store: Path, **wanted: Any) -> list[Any]:
    table = task_table(store, MESSAGES, topics=wanted.pop("topics", None))
    return table.tasks(condition_of(table.schema, **wanted))


def test_without_columns_messages_have_the_lean_ones(store: Path) -> None:
    assert isinstance(open_store(store), pa.RecordBatchReader)
    assert open_store(store, columns="all").schema.names == list(STORE_COLUMNS)
    assert set(open_store(store).schema.names) == set(LEAN_COLUMNS)
    assert open_store(store, table="consumerOffsets").schema.names == ["group", "topic", "queueId", "offset"]


def test_columns_are_in_the_order_in_which_they_are_named(store: Path) -> None:
    assert open_store(store, columns="tags, topic").schema.names == ["tags", "topic"]
    assert open_store(store, columns=["queueOffset"]).read_all().num_rows == COUNT


@pytest.mark.parametrize(
    ("wanted", "is_wanted"),
    [
        ({"filters": [("tags", "=", "A")]}, lambda one: one["tags"] == "A"),
        ({"filters": [("queueId", "in", [1, 2]), ("tags", "!=", "A")]}, lambda one: one["queueId"] == 1),
        ({"filters": [[("queueId", "=", 0)], [("queueId", "=", 3)]]}, lambda one: one["queueId"] in (0, 3)),
        ({"filters": pc.field("msgId") == f"{9:032X}"}, lambda one: one["msgId"] == f"{9:032X}"),
        (
            {"filters": pc.match_substring(pc.field("body"), '"n": 4}')},
            lambda one: one["body"] == b'{"n": 4}',
        ),
        ({"topics": "Bills"}, lambda one: one["topic"] == "Bills"),
        ({"filters": [("topic", "in", ["Bills", "Nobody"])]}, lambda one: one["topic"] == "Bills"),
        ({"filters": [("topic", "=", "Bills")]}, lambda one: one["topic"] == "Bills"),
        ({"since": BEGIN_MS + 100 * STEP_MS}, lambda one: one["storeMs"] >= BEGIN_MS + 100 * STEP_MS),
        ({"until": BEGIN_MS + 100 * STEP_MS}, lambda one: one["storeMs"] < BEGIN_MS + 100 * STEP_MS),
        (
            {"topics": "Bills", "since": datetime.fromtimestamp(BEGIN_MS / 1000, UTC) + timedelta(hours=2)},
            lambda one: one["topic"] == "Bills" and one["storeMs"] >= BEGIN_MS + 7_200_000,
        ),
        ({"filters": [("status", "=", "ok")]}, lambda one: True),
        ({"filters": [("status", "=", "bad crc")]}, lambda one: False),
    ],
)
def test_rows_are_those_that_meet_the_condition(store: Path, wanted: dict[str, Any], is_wanted: Any) -> None:
    assert numbers(open_store(store, columns=["msgId"], **wanted)) == [
        number for number in NUMBERS if is_wanted(message(number))
    ]


CONDITIONS = st.one_of(
    st.builds(
        lambda compare, number: compare(
            pc.field("storeTimestamp"),
            pa.scalar((BEGIN_MS + number * STEP_MS) * 1000, pa.timestamp("us", "UTC")),
        ),
        st.sampled_from([pc.less, pc.greater_equal, pc.equal]),
        st.integers(-5, COUNT + 5),
    ),
    st.builds(lambda position: pc.field("physicalOffset") >= position, st.integers(0, 8 * FILE_BYTES)),
    st.builds(lambda topic: pc.field("topic") == topic, st.sampled_from(["Bills", "Orders", "Nobody"])),
    st.builds(lambda topic: pc.field("topic") >= topic, st.sampled_from(["B", "C", "Orders", "P"])),
    st.builds(lambda queue: pc.field("queueId") == queue, st.integers(0, 4)),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(CONDITIONS, min_size=1, max_size=3), st.sampled_from(["and", "or", "not"]))
def test_what_is_not_read_has_no_row_that_meets_the_condition(
    store: Path, parts: list[Any], join: str
) -> None:
    condition = parts[0]
    for part in parts[1:]:
        condition = condition | part if join == "or" else condition & part
    condition = ~condition if join == "not" else condition
    expected = open_store(store, columns="all").read_all().filter(condition)
    assert open_store(store, columns="all", filters=condition).read_all().equals(expected)


@pytest.mark.parametrize("constant", [True, False])
def test_a_condition_without_columns_is_for_all_rows(store: Path, constant: bool) -> None:
    every = open_store(store, columns="msgId").read_all().num_rows
    found = open_store(store, columns="msgId", filters=pc.scalar(constant)).read_all().num_rows
    assert found == (every if constant else 0)


def test_a_column_may_be_named_by_its_number(store: Path) -> None:
    every = open_store(store, table="consumequeue").read_all()
    for condition in (pc.field(0) == "Bills", pc.field(3) > 5, pc.field(3).cast("string") == "0"):
        found = open_store(store, table="consumequeue", filters=condition).read_all()
        assert found.equals(every.filter(condition))


def test_files_and_splits_outside_the_times_are_not_read(store: Path) -> None:
    every, hour = tasks(store), tasks(store, since=BEGIN_MS, until=BEGIN_MS + 3_600_000)
    assert len(every) > 5
    assert 1 <= len(hour) <= 3
    assert tasks(store, since=BEGIN_MS + COUNT * STEP_MS * 2) == tasks(store)[-1:], "the last may still grow"


def test_a_clock_that_was_set_back_by_hours_hides_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def set_back(number: int) -> dict[str, Any]:
        values = message(number)
        return values | {"storeMs": values["storeMs"] - (2 * 3_600_000 if number >= COUNT // 2 else 0)}

    monkeypatch.setattr(stores, "message", set_back)
    store = write_store(tmp_path / "store")
    for hours in range(6):
        since = BEGIN_MS + hours * 3_600_000
        found = numbers(open_store(store, columns="msgId", since=since, until=since + 3_600_000))
        assert found == [
            number for number in NUMBERS if since <= set_back(number)["storeMs"] < since + 3_600_000
        ]


def test_a_topic_that_is_a_small_part_is_read_by_its_consume_queues(store: Path) -> None:
    for few in (tasks(store, topics="Bills"), tasks(store, filters=[("topic", "=", "Bills")])):
        *units, rest = few
        assert {type(task) for task in units} == {ScanTask}
        assert rest.split.begin > 0, "only what follows the last record that a queue knows"
    assert {type(task) for task in tasks(store, topics="Orders")} == {LogTask}


def test_records_of_a_deleted_topic_are_read_from_the_log(tmp_path: Path) -> None:
    root = write_store(tmp_path / "store")
    shutil.rmtree(root / "consumequeue" / "Bills")
    of_bills = NUMBERS[::10]
    assert numbers(open_store(root, columns="msgId", topics="Bills")) == of_bills
    assert numbers(open_store(root, columns="msgId", topics="Bills,Orders")) == NUMBERS
    assert numbers(open_store(root, columns="msgId", filters=[("topic", "=", "Bills")])) == of_bills


def test_what_no_queue_knows_yet_is_read_from_the_log(tmp_path: Path) -> None:
    root = write_store(tmp_path / "store")
    queue = root / "consumequeue" / "Bills" / "0" / f"{0:020}"
    for path in (root / "consumequeue").rglob("0" * 20):
        path.write_bytes(path.read_bytes()[: -40 if path == queue else -80])
    assert numbers(open_store(root, columns="msgId", topics="Bills"))[-1] == COUNT - 10


def test_small_tables_of_a_store(store: Path) -> None:
    units = open_store(store, table="consumequeue", topics="Bills", filters=[("queueId", "=", 2)]).read_all()
    assert units.column("queueOffset").to_pylist() == list(range(COUNT // 20))
    of_queue = [("topic", "=", "Bills"), ("queueId", "=", 2)]
    messages = open_store(store, columns=["physicalOffset", "storeSize"], filters=of_queue).read_all()
    assert units.select(["physicalOffset", "size"]).columns == messages.columns
    offsets = open_store(store, table="consumerOffsets", columns="queueId,offset").read_all()
    assert offsets.to_pylist() == [{"queueId": 0, "offset": 3}, {"queueId": 2, "offset": 30}]


def damaged(root: Path) -> Path:
    write_store(root)
    overwrite(root / "commitlog" / f"{0:020}", b'{"n": 5}')
    (root / "commitlog" / f"{2 * FILE_BYTES:020}").unlink()
    return root


def test_damage_is_an_error_a_warning_or_a_row(tmp_path: Path) -> None:
    root = damaged(tmp_path / "store")
    with pytest.raises(CorruptStoreError, match="bytes of the log are missing after it"):
        open_store(root)
    statuses = open_store(root, on_corrupt="report", columns=["status"], filters=pc.field("status") != "ok")
    assert sorted(statuses.read_all().column("status").to_pylist()) == ["bad crc", "missing"]
    assert len(numbers(open_store(root, on_corrupt="skip", verify_crc=True))) < COUNT - 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"columns": "topic,colour"}, "unknown column colour; the columns are topic, brokerName"),
        ({"columns": ["topic", "topic"]}, "columns must name each column once"),
        (
            {"table": "files"},
            "table must be one of messages, runs, stats, consumequeue, consumerOffsets, got 'files'",
        ),
        ({"topics": " ,"}, "topics must name a topic"),
        ({"on_corrupt": "ignore"}, "on_corrupt must be one of fail, skip, report, got 'ignore'"),
        ({"threads": 0}, "threads must be a whole number, 1 or more, got 0"),
        ({"threads": "two"}, "threads must be a whole number, 1 or more, got 'two'"),
        ({"columns": 5}, "columns must be names, as a list or a text with commas, got 5"),
        ({"columns": [5]}, "columns must be names, as a list or a text with commas, got [5]"),
        ({"colour": "red"}, "unknown option colour; the options are broker_name, on_corrupt, verify_crc"),
        ({"brokerName": "a"}, "unknown option brokerName; similar: broker_name; the options are"),
        ({"broker_name": 5}, "broker_name must be a text, got 5"),
        ({"verify_crc": "no"}, "verify_crc must be True or False, got 'no'"),
        ({"check_queues": True}, "check_queues is for table runs"),
        ({"check_queues": True, "table": "stats"}, "check_queues is for table runs"),
        ({"since": "yesterday"}, "since must be a datetime or epoch ms, got 'yesterday'"),
        ({"filters": "tags = 'A'"}, "filters must be an expression or a list"),
        ({"filters": [("colour", "=", 1)]}, "filters: unknown column colour; the columns are topic"),
        (
            {"filters": [("queueId", "=", "x")]},
            "filters: a value does not have the type of its column: int32 and string cannot be compared",
        ),
    ],
)
def test_what_is_wrong_in_a_call_is_named(store: Path, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as raised:
        open_store(store, **wrong)
    assert message in str(raised.value)


def test_a_folder_that_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="commitlog is not a folder"):
        open_store(tmp_path)


@pytest.mark.parametrize("table", ["messages", "runs", "stats", "consumequeue", "consumerOffsets"])
def test_a_path_that_does_not_exist_is_named_as_the_argument(tmp_path: Path, table: str) -> None:
    with pytest.raises(OptionError, match=f"^path: {tmp_path}/nosuch/"):
        open_store(tmp_path / "nosuch", table=table)


def test_a_dataset_reads_anew_for_every_question(store: Path) -> None:
    dataset = store_dataset(store)
    assert dataset.count_rows() == COUNT
    table = dataset.to_table(columns=["keys"], filter=pc.field("topic") == "Bills")
    assert table.column("keys").to_pylist()[:2] == ["k0 all", "k10 all"]
    assert dataset.head(3, columns=["tags"]).to_pydict() == {"tags": ["A", "B", "A"]}


def test_runs_and_statistics_are_tables_too(store: Path) -> None:
    runs = open_store(
        store, table="runs", columns="status,records", check_queues=True, on_corrupt="report"
    ).read_all()
    assert set(runs.column("status").to_pylist()) == {"ok"}
    assert sum(runs.column("records").to_pylist()) == COUNT
    counts = open_store(store, table="stats", columns=["topic", "messages"], topics="Bills").read_all()
    assert set(counts.column("topic").to_pylist()) == {"Bills"}
    assert sum(counts.column("messages").to_pylist()) == COUNT // 10
    late = open_store(store, table="stats", filters=[("minute", ">=", HALF)], columns="messages").read_all()
    assert sum(late.column("messages").to_pylist()) == COUNT // 2
