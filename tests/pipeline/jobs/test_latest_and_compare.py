"""The last message of each key, and two sides compared."""

from pathlib import Path
from typing import Any

import msgspec
from pocketmq.pipeline.jobs.answers import compare, latest
from pocketmq.pipeline.jobs.sql.message_input import MessageInput
from pocketmq.protocol.message.record import Record
from pocketmq.testing import RocketMQ

from pipeline.commands import run
from pipeline.jobs.reports import rows
from pipeline.store_files import overwrite, write_records
from pipeline.tables.stores import COUNT, message, write_store


def test_a_key_may_be_any_expression(engine: Any, store: Path) -> None:
    report = latest.build(engine, MessageInput(store=str(store)), by="properties['TAGS']")
    assert [(row["topic"], row["key"]) for row in rows(report, "latest")] == [
        ("Bills", "A"),
        ("Orders", "A"),
        ("Orders", "B"),
    ]
    assert rows(report, "latest")[2]["body"] == message(COUNT - 1)["body"]


def test_equal_sides_have_no_difference(engine: Any, store: Path) -> None:
    side = MessageInput(store=str(store))
    report = compare.build(engine, side, side, has_queues=True, has_minutes=True)
    assert report.findings == []
    assert [(row["leftMessages"], row["rightMessages"]) for row in rows(report, "topics")] == [
        (60, 60),
        (540, 540),
    ]
    assert len(rows(report, "queues")) == 6
    assert sum(row["leftMessages"] for row in rows(report, "minutes")) == COUNT


def test_a_copy_counts_in_the_minute_of_its_message(engine: Any, tmp_path: Path) -> None:
    """As a mirror leaves them: copies have the time at which they were sent, or that of another in their request."""
    minute = 60_000
    original = [
        Record("T", 0, number, 0, body=b"m", properties=properties, born_timestamp=(5 + number) * minute)
        for number, properties in enumerate((text("A" * 32), text("B" * 32), b""))
    ]
    copies = [msgspec.structs.replace(one, born_timestamp=9 * minute) for one in original]
    sides = []
    for name, records in (("left", original), ("right", copies)):
        write_records(tmp_path / name, records)
        sides.append(MessageInput(store=str(tmp_path / name)))
    found = rows(compare.build(engine, *sides, has_minutes=True), "minutes")
    counts = {row["minute"].minute: (row["leftMessages"], row["rightMessages"]) for row in found}
    assert counts == {5: (1, 1), 6: (1, 1), 7: (1, 0), 9: (0, 1)}, "one without an id is in its own minute"


def text(message_id: str) -> bytes:
    return f"UNIQ_KEY\x01{message_id}\x02".encode()


def test_missing_and_different_messages_are_named(engine: Any, store: Path, tmp_path: Path) -> None:
    shorter = write_store(tmp_path / "shorter", count=COUNT - 3)
    overwrite(shorter / "commitlog" / f"{0:020}", b'{"n": 7}', b'{"n": 6}')  # and not its CRC
    left, right = MessageInput(store=str(store)), MessageInput(store=str(shorter))
    report = compare.build(engine, left, right)
    missing = rows(report, "missing")
    assert [int(row["id"], 16) for row in missing] == [COUNT - 2, COUNT - 1, COUNT - 3] or len(missing) == 3
    assert {row["missingIn"] for row in missing} == {"right"}
    assert [int(row["id"], 16) for row in rows(report, "different")] == [7]
    assert report.findings == [
        f"Orders: 3 messages missing in {shorter}",
        "Orders: 1 message with another body",
    ]


def test_a_store_and_its_broker_are_compared_by_a_command(
    rocketmq: RocketMQ, store: Path, tmp_path: Path
) -> None:
    topic = rocketmq.topic("copied", queues=1)
    rocketmq.send(topic, "m1")
    same = run("compare", rocketmq.namesrv_addr, rocketmq.namesrv_addr, "--topics", topic)
    assert same.exit_code == 0, same.output
    ran = run("compare", str(store), rocketmq.namesrv_addr, "--topics", topic)
    assert ran.exit_code == 1, ran.output
    assert "1 message missing in" in ran.output
    wrong = run("compare", f"{tmp_path}/no", rocketmq.namesrv_addr, "--topics", topic)
    assert wrong.exit_code == 2
    assert wrong.output.startswith("pocketmq: LEFT: ")
