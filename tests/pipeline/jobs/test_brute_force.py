"""The jobs' answers about stores of every kind of record are those of a reader that knows only the format."""

from pathlib import Path
from typing import Any

import pytest
from pocketmq.pipeline.jobs.answers import audit, duplicates, find, latest, sql, stats
from pocketmq.pipeline.jobs.sql.message_input import MessageInput

from pipeline.jobs import brute_force
from pipeline.jobs.brute_force import Message, read_store
from pipeline.jobs.reports import rows
from pipeline.jobs.seeded_store import DELETED, write_seeded_store

Store = tuple[Path, list[Message], MessageInput]


@pytest.fixture(params=[1, 2, 3, 4, 5])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    root = write_seeded_store(tmp_path / "store", request.param)
    return root, read_store(root), MessageInput(store=str(root))


COLUMNS = (
    *("topic", "queueId", "queueOffset", "physicalOffset", "storeSize", "flag", "sysFlag", "bornTimestamp"),
    *("storeTimestamp", "bornHost", "reconsumeTimes", "body", "properties", "keys", "tags"),
)


def values(messages: list[Message], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(one[name] for name in columns) for one in messages]


def test_every_column_of_every_message(engine: Any, store: Store) -> None:
    _, messages, source = store
    text = f"select {', '.join(COLUMNS)} from messages order by physicalOffset"
    assert values(rows(sql.build(engine, text, source), "rows"), *COLUMNS) == values(messages, *COLUMNS)


@pytest.mark.parametrize("key", ["k1", "größe"])
def test_messages_are_found_by_key_tag_and_text(engine: Any, store: Store, key: str) -> None:
    _, messages, source = store
    for wanted, is_wanted in (
        (find.Wanted(message_key=key), lambda one: key in (one["keys"] or "").split(" ")),
        (find.Wanted(tag="it's"), lambda one: one["tags"] == "it's"),
        (find.Wanted(text='{"n": 5}'), lambda one: b'{"n": 5}' in one["body"]),
        (find.Wanted(text="a\\b"), lambda one: b"a\\b" in one["body"]),
    ):
        found = rows(find.build(engine, source, wanted, limit=1000), "messages")
        place = "topic", "queueId", "queueOffset", "body"
        assert sorted(values(found, *place)) == sorted(values(list(filter(is_wanted, messages)), *place)), (
            wanted
        )


def test_statistics(engine: Any, store: Store) -> None:
    _, messages, source = store
    report = stats.build(engine, source, keys=1000)
    minutes = [one | {"minute": one["storeTimestamp"].replace(second=0, microsecond=0)} for one in messages]
    for table, *columns in (
        ("topics", "topic"),
        ("queues", "topic", "queueId"),
        ("tags", "topic", "tags"),
        ("minutes", "topic", "minute"),
    ):
        found = {
            tuple(row[name] for name in columns): (row["messages"], row["bytes"])
            for row in rows(report, table)
        }
        assert found == brute_force.counts(
            minutes, lambda one, columns=columns: tuple(one[name] for name in columns)
        )


def test_the_last_message_of_each_key(engine: Any, store: Store) -> None:
    _, messages, source = store
    place = "topic", "queueId", "queueOffset", "storeTimestamp"
    positions = dict(zip(values(messages, *place), values(messages, "physicalOffset"), strict=True))
    for by, name in (("keys", "KEYS"), ("properties['orderId']", "orderId")):
        found = rows(latest.build(engine, source, by=by, deleted_by="A"), "latest")
        last = {
            (row["topic"], row["key"]): (*positions[each], row["versions"])
            for row, each in zip(found, values(found, *place), strict=True)
        }
        assert last == brute_force.latest(messages, name, "A")


def test_messages_that_are_stored_twice(engine: Any, store: Store) -> None:
    _, messages, source = store
    assert any("UNIQ_KEY" not in one["properties"] for one in messages), "they have ids of their own"
    found = rows(duplicates.build(engine, source), "duplicates")
    twice = values([row for row in found if row["level"] == "stored twice"], "topic", "msgId")
    assert set(twice) == brute_force.stored_twice(messages)


def test_the_audit(engine: Any, store: Store) -> None:
    root, messages, _ = store
    report = audit.build(engine, str(root))
    damaged = [(one["physicalOffset"], "bad crc") for one in messages if not one["hasOwnCrc"]]
    assert values(rows(report, "damaged"), "physicalOffset", "status") == damaged
    kept = [one for one in messages if one["topic"] != DELETED]
    found = {(row["topic"], row["queueId"]): (row["records"], row["bytes"]) for row in rows(report, "queues")}
    assert found == brute_force.counts(kept, lambda one: (one["topic"], one["queueId"]))
    gaps = {(row["topic"], row["queueId"], row["first"]): row["count"] for row in rows(report, "gaps")}
    assert gaps == brute_force.gaps(kept)
    (deleted,) = rows(report, "deleted")
    assert (deleted["topic"], deleted["records"]) == (DELETED, len(messages) - len(kept))
