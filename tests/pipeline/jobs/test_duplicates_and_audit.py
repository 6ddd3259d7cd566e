"""Messages that are stored more than once, and what an audit finds, on DuckDB."""

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from pocketmq.pipeline.jobs.answers import audit, duplicates
from pocketmq.pipeline.jobs.report.report import findings_line
from pocketmq.pipeline.jobs.sql.message_input import MessageInput
from pocketmq.protocol.message.record import Record
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.commands import run
from pipeline.jobs.reports import rows
from pipeline.store_files import Message, overwrite, units_of, write_log, write_queues, write_records
from pipeline.tables.stores import BEGIN_MS
from spark.planted_store import BAD_BODY, DOUBLE, MISSING, TOPIC
from spark.planted_store import write_store as write_planted_store

# -- duplicates


def test_a_copy_in_a_dead_letter_topic_names_it_and_many_findings_are_counted(
    engine: Any, rocketmq: RocketMQ
) -> None:
    topic = rocketmq.topic("twice", queues=1)
    dead = f"%DLQ%{topic}"
    for number in range(duplicates.LISTED_FINDINGS + 3):
        for _ in range(2):
            rocketmq.send(topic, "x", keys=f"k{number}")
    rocketmq.send(dead, "x", keys="k0")
    source = MessageInput(namesrv_addr=rocketmq.namesrv_addr, topics=f"{topic},{dead}")
    report = duplicates.build(engine, source, by="keys")
    assert (len(report.findings or []), report.hidden_findings) == (duplicates.LISTED_FINDINGS, 3)
    assert findings_line(report) == "23 findings; 3 of them are only in the tables"
    places = [row["places"] for row in rows(report, "duplicates") if row["keys"] == "k0"]
    assert f"{dead} broker-a " in places[0]


def test_one_duplicate_is_found_with_its_queues_and_offsets(engine: Any, tmp_path: Path) -> None:
    source = MessageInput(store=str(write_planted_store(tmp_path / "store")))
    report = duplicates.build(engine, source)
    assert rows(report, "duplicates") == [
        {
            "msgId": DOUBLE,
            "topic": TOPIC,
            "level": "stored twice",
            "copies": 2,
            "seconds": 31.0,
            "places": "0/11, 1/25",
        }
    ]
    assert report.findings == [f"{TOPIC}: msgId {DOUBLE} is stored 2 times, 31.0 s apart: 0/11, 1/25"]


@pytest.mark.parametrize("by", ["msgId", "keys"])
def test_copies_in_another_topic_are_no_duplicates(engine: Any, tmp_path: Path, by: str) -> None:
    messages = [("A", ""), ("B", ""), ("A", ""), ("%RETRY%g", "B"), ("C", "")]
    source = MessageInput(store=str(write_copies(tmp_path, messages)))
    report = duplicates.build(engine, source, by=by)
    found = [(row["topic"], row["level"], row["copies"], row["places"]) for row in rows(report, "duplicates")]
    assert found == [
        ("A", "stored twice", 2, "0/0, 0/2"),
        ("B", "redelivered", 2, "%RETRY%g 0/3, 0/1"),
    ] or found == [("B", "redelivered", 2, "%RETRY%g 0/3, 0/1"), ("A", "stored twice", 2, "0/0, 0/2")]
    assert report.findings is not None
    assert len(report.findings) == 1


def write_copies(root: Path, messages: list[tuple[str, str]]) -> Path:
    """A log of messages with one id and key: (topic, topic of origin of a retry)."""
    records = []
    for number, (topic, origin) in enumerate(messages):
        properties = f"KEYS\x01k\x02UNIQ_KEY\x01{7:032X}\x02" + (
            f"RETRY_TOPIC\x01{origin}\x02" if origin else ""
        )
        records.append(
            Record(topic, 0, number, 0, b"x", properties.encode(), store_timestamp=BEGIN_MS + number)
        )
    write_records(root, records)
    return root


def test_no_duplicate_is_no_finding(engine: Any, store: Path) -> None:
    report = duplicates.build(engine, MessageInput(store=str(store)))
    assert (report.findings, rows(report, "duplicates")) == ([], [])


# -- audit


def test_the_audit_names_the_messages_of_a_lost_queue(engine: Any, tmp_path: Path) -> None:
    store = write_planted_store(tmp_path / "store", is_faulty=False)
    shutil.rmtree(store / "consumequeue" / TOPIC / "0")
    report = audit.build(engine, str(store))
    assert report.findings == [
        f"{TOPIC} queue 0 offset 0: its consume queue is missing",
        f"{TOPIC} queue 0 offsets 1 to 39: no unit in its consume queue",
    ]
    assert rows(report, "deleted") == []


def test_a_queue_that_a_recreated_topic_has_not_used_again_is_not_lost(engine: Any, tmp_path: Path) -> None:
    messages = [Message(TOPIC, queue_id, offset) for offset in range(3) for queue_id in (0, 1)]
    written = write_log(tmp_path, [*messages, Message(TOPIC, 1, 0), Message(TOPIC, 1, 1)])
    write_queues(tmp_path, units_of(written[-2:]))
    report = audit.build(engine, str(tmp_path))
    assert report.findings == []
    assert [(row["topic"], row["records"]) for row in rows(report, "deleted")] == [(TOPIC, 6)]


def test_the_audit_finds_one_gap_and_one_bad_crc(engine: Any, tmp_path: Path) -> None:
    report = audit.build(engine, str(write_planted_store(tmp_path / "store")))
    (damaged,) = rows(report, "damaged")
    assert (damaged["status"], damaged["queueOffset"]) == ("bad crc", BAD_BODY // 2)
    (gap,) = rows(report, "gaps")
    assert (gap["queueId"], gap["what"], gap["first"], gap["count"]) == (MISSING[0], "missing", MISSING[1], 1)
    assert rows(report, "order") == rows(report, "index") == []
    assert report.findings is not None
    assert report.findings[1] == f"{TOPIC} queue {MISSING[0]}: missing, 1 message from offset {MISSING[1]}"


def test_the_audit_names_repeated_offsets_and_disorder(engine: Any, tmp_path: Path) -> None:
    write_log(tmp_path, [Message(TOPIC, 0, offset) for offset in (0, 1, 2, 5, 6, 1, 2, 3)])
    report = audit.build(engine, str(tmp_path))
    gaps = [(row["what"], row["first"], row["count"]) for row in rows(report, "gaps")]
    assert gaps == [("offset more than once", 1, 2), ("missing", 4, 1)]
    assert [(row["queueOffset"], row["previous"]) for row in rows(report, "order")] == [(1, 6)]
    (queue,) = rows(report, "queues")
    assert [queue[name] for name in ("records", "first", "last", "offsets")] == [8, 0, 6, 6]


def test_an_audit_counts_the_findings_that_it_does_not_list(engine: Any, store: Path, tmp_path: Path) -> None:
    shutil.copytree(store, tmp_path / "store")
    (file,) = (tmp_path / "store" / "consumequeue" / "Orders" / "1").iterdir()
    for unit in range(30):
        overwrite(file, unit * 40 + 11)  # its size
    report = audit.build(engine, str(tmp_path / "store"))
    assert len(report.findings or []) == audit.SHOWN
    assert audit.SHOWN + report.hidden_findings == len(rows(report, "index")) >= 30


def test_the_audit_of_a_sound_store_finds_nothing(store: Path) -> None:
    ran = run("audit", "--store", str(store))
    assert ran.exit_code == 0, ran.output
    assert "Nothing found." in ran.output


def test_the_audit_of_a_store_that_is_being_written_finds_nothing(engine: Any, tmp_path: Path) -> None:
    """Log and consume queues are read at two moments: what is written between them is no finding."""
    with EmbeddedServer(store=tmp_path / "store") as server:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("live", queues=4)
        rocketmq.send(topic, "the first, for which the files are made")
        is_ended = threading.Event()

        def send() -> None:
            while not is_ended.is_set():
                rocketmq.send(topic, "x" * 100)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            counts = []
            for _ in range(8):
                report = audit.build(engine, str(tmp_path / "store"))
                assert report.findings == []
                counts.append(sum(row["records"] for row in rows(report, "queues")))
        finally:
            is_ended.set()
            sender.join()
    assert 0 < counts[0] < counts[-1], "it was being written"
