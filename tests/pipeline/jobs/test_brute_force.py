"""The jobs' answers about stores of every kind of record are those of a reader that knows only the format."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pocketmq.pipeline.jobs.answers import audit, duplicates, find, latest, sql, stats
from pocketmq.pipeline.jobs.sql.message_input import MessageInput

from pipeline.jobs import brute_force
from pipeline.jobs.brute_force import Message, read_store
from pipeline.jobs.reports import rows
from pipeline.jobs.seeded_store import DELETED, write_seeded_store

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Store = tuple[Path, list[Message], MessageInput]


@pytest.fixture(params=[1, 2, 3, 4, 5])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    root = write_seeded_store(tmp_path / "store", request.param)
    return root, read_store(root), MessageInput(store=str(root))


def moment(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def test_every_column_of_every_message(engine: Any, store: Store) -> None:
    _, messages, source = store
    text = (
        "select topic, queueId, queueOffset, physicalOffset, storeSize, flag, sysFlag, bornTimestamp, "
        "storeTimestamp, bornHost, reconsumeTimes, body, properties, keys, tags from messages order by physicalOffset"
    )
    found = [tuple(row.values()) for row in rows(sql.build(engine, text, source), "rows")]
    assert found == [
        (
            *(one.topic, one.queue_id, one.offset, one.position, one.size, one.flag, one.sys_flag),
            *(
                moment(one.born_ms),
                moment(one.stored_ms),
                one.born_host,
                one.attempts,
                one.body,
                one.properties,
            ),
            *(one.properties.get("KEYS"), one.properties.get("TAGS")),
        )
        for one in messages
    ]


@pytest.mark.parametrize("key", ["k1", "größe"])
def test_messages_are_found_by_key_tag_and_text(engine: Any, store: Store, key: str) -> None:
    _, messages, source = store
    for wanted, is_wanted in (
        (find.Wanted(message_key=key), lambda one: key in one.properties.get("KEYS", "").split(" ")),
        (find.Wanted(tag="it's"), lambda one: one.properties.get("TAGS") == "it's"),
        (find.Wanted(text='{"n": 5}'), lambda one: b'{"n": 5}' in one.body),
        (find.Wanted(text="a\\b"), lambda one: b"a\\b" in one.body),
    ):
        found = rows(find.build(engine, source, wanted, limit=1000), "messages")
        assert sorted(
            (row["topic"], row["queueId"], row["queueOffset"], row["body"]) for row in found
        ) == sorted((one.topic, one.queue_id, one.offset, one.body) for one in messages if is_wanted(one)), (
            wanted
        )


def test_statistics(engine: Any, store: Store) -> None:
    _, messages, source = store
    report = stats.build(engine, source, keys=1000)

    def table(name: str, *columns: str) -> dict[object, tuple[int, int]]:
        return {
            tuple(row[column] for column in columns): (row["messages"], row["bytes"])
            for row in rows(report, name)
        }

    assert table("topics", "topic") == brute_force.counts(messages, lambda one: (one.topic,))
    assert table("queues", "topic", "queueId") == brute_force.counts(
        messages, lambda one: (one.topic, one.queue_id)
    )
    assert table("tags", "topic", "tags") == brute_force.counts(
        messages, lambda one: (one.topic, one.properties.get("TAGS"))
    )
    assert table("minutes", "topic", "minute") == brute_force.counts(
        messages, lambda one: (one.topic, moment(one.stored_ms).replace(second=0, microsecond=0))
    )


def test_the_last_message_of_each_key(engine: Any, store: Store) -> None:
    _, messages, source = store
    for by, name in (("keys", "KEYS"), ("properties['orderId']", "orderId")):
        found = rows(latest.build(engine, source, by=by, deleted_by="A"), "latest")
        places = {
            (one.topic, one.queue_id, one.offset, moment(one.stored_ms)): one.position for one in messages
        }
        assert {
            (row["topic"], row["key"]): (
                places[row["topic"], row["queueId"], row["queueOffset"], row["storeTimestamp"]],
                row["versions"],
            )
            for row in found
        } == brute_force.latest(messages, name, "A")


def test_messages_that_are_stored_twice(engine: Any, store: Store) -> None:
    _, messages, source = store
    without_id = {one.position for one in messages if one.message_id is None}
    assert without_id, "they have ids of their own"
    found = rows(duplicates.build(engine, source), "duplicates")
    assert {
        (row["topic"], row["msgId"]) for row in found if row["level"] == "stored twice"
    } == brute_force.stored_twice(messages)


def test_the_audit(engine: Any, store: Store) -> None:
    root, messages, _ = store
    report = audit.build(engine, str(root))
    damaged = [(row["physicalOffset"], row["status"]) for row in rows(report, "damaged")]
    assert damaged == [(one.position, "bad crc") for one in messages if not one.has_own_crc]
    kept = [one for one in messages if one.topic != DELETED]
    found = {(row["topic"], row["queueId"]): (row["records"], row["bytes"]) for row in rows(report, "queues")}
    assert found == brute_force.counts(kept, lambda one: (one.topic, one.queue_id))
    assert {
        (row["topic"], row["queueId"], row["first"]): row["count"] for row in rows(report, "gaps")
    } == brute_force.gaps(kept)
    (deleted,) = rows(report, "deleted")
    assert (deleted["topic"], deleted["records"]) == (DELETED, len(messages) - len(kept))
