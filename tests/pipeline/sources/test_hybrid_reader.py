"""A range is read from the broker's files and its tail from the broker: every message once, in order."""

import json
import shutil
from pathlib import Path

import pytest
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.spark.sources import hybrid_reader
from pocketmq.pipeline.spark.sources.hybrid_reader import records_of
from pocketmq.pipeline.tables.brokers.broker_client import shared_client
from pocketmq.pipeline.tables.brokers.read_planner import Planner
from pocketmq.pipeline.tables.planning.topic_options import SourceOptions, read_source_options
from pocketmq.testing import EmbeddedServer, RocketMQ

from pipeline.brokers.reading import options
from pipeline.store_files import overwrite

pytestmark = pytest.mark.slow
COUNT = 30


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def server(store: Path) -> "EmbeddedServer":
    """A broker with a store in a folder."""
    with EmbeddedServer(store=store) as made:
        yield made  # type: ignore[misc]


def send(server: EmbeddedServer, count: int = COUNT) -> str:
    rocketmq = RocketMQ(server)
    topic = rocketmq.topic("hybrid", queues=2)
    for number in range(count):
        rocketmq.send(topic, f"m{number:02}", tags="AB"[number % 2], queue_id=number // 2 % 2)
    return topic


def copy_of(store: Path, copy: Path) -> Path:
    """Log and queues, as they are now."""
    for name in ("commitlog", "consumequeue"):
        shutil.copytree(store / name, copy / name)
    return copy


def options_of(server: EmbeddedServer, topic: str, **more: str) -> SourceOptions:
    return options(server, topic, retryTimeoutMs="500", **more)


def texts(chosen: SourceOptions) -> list[str]:
    """The bodies of every queue, in its order."""
    planner = Planner(shared_client(chosen.namesrv_addr, chosen.access), chosen)
    return [
        bytes(body).decode()
        for part in planner.batch()
        for records in records_of(part, chosen)
        for body in records.column("body").to_pylist()
    ]


@pytest.fixture
def pulls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The ranges that are read from the broker."""
    asked: list[tuple[int, int]] = []
    reader = hybrid_reader.RangeReader

    def counted(client: object, wanted: object, options: object) -> object:
        asked.append((wanted.lo, wanted.hi))  # type: ignore[attr-defined]
        return reader(client, wanted, options)  # type: ignore[arg-type]

    monkeypatch.setattr(hybrid_reader, "RangeReader", counted)
    return asked


def test_what_is_in_files_is_read_from_files(
    server: EmbeddedServer, store: Path, pulls: list[tuple[int, int]]
) -> None:
    topic = send(server)
    pulled = texts(options_of(server, topic))
    assert pulls == [(0, 16), (0, 14)]
    del pulls[:]
    assert texts(options_of(server, topic, storePath=str(store))) == pulled
    assert pulls == [(0, 1), (0, 1)], "only to compare the first message"


def test_the_tail_that_no_file_has_is_pulled(
    server: EmbeddedServer, store: Path, tmp_path: Path, pulls: list[tuple[int, int]]
) -> None:
    """The copy of a store ends where it was made."""
    topic = send(server)
    pulled = texts(options_of(server, topic))
    copy = copy_of(store, tmp_path / "copy")
    for queue in (0, 1):
        units = copy / "consumequeue" / topic / str(queue) / f"{0:020}"
        units.write_bytes(units.read_bytes()[: 20 * 9])
    del pulls[:]
    assert texts(options_of(server, topic, storePath=str(copy))) == pulled
    assert pulls == [(0, 1), (9, 16), (0, 1), (9, 14)]


@pytest.mark.parametrize("fault", ["record", "unit", "log"])
def test_files_that_do_not_have_the_queue_are_left_for_the_broker(
    server: EmbeddedServer, store: Path, tmp_path: Path, fault: str, pulls: list[tuple[int, int]]
) -> None:
    topic = send(server)
    pulled = texts(options_of(server, topic))
    copy = copy_of(store, tmp_path / "copy")
    if fault == "log":
        for path in copy.glob("commitlog/*"):
            path.unlink()
    elif fault == "unit":
        units = copy / "consumequeue" / topic / "0" / f"{0:020}"
        overwrite(units, 20 * 5, units.read_bytes()[20 * 6 : 20 * 7])
    else:
        (log,) = copy.glob("commitlog/*")
        overwrite(log, log.read_bytes().index(b"m08") - 60, b"\xff" * 4)
    for rows in ("4", "4096"):
        assert texts(options_of(server, topic, storePath=str(copy), decodeRows=rows)) == pulled


def test_tags_filter_what_files_have(server: EmbeddedServer, store: Path) -> None:
    topic = send(server)
    found = texts(options_of(server, topic, storePath=str(store), subExpression="A"))
    assert sorted(found) == [f"m{number:02}" for number in range(0, COUNT, 2)]


def test_the_store_of_another_broker_is_refused(server: EmbeddedServer, tmp_path: Path) -> None:
    topic = send(server)
    with EmbeddedServer(store=tmp_path / "other") as other:
        rocketmq = RocketMQ(other)
        for number in range(COUNT):
            rocketmq.send(topic, f"other {number}", queue_id=number % 2)
        with pytest.raises(OptionError, match="other is not the store of broker-a: offset 0"):
            texts(options_of(server, topic, storePath=str(tmp_path / "other")))


def test_stores_are_named_by_broker(
    server: EmbeddedServer, store: Path, pulls: list[tuple[int, int]]
) -> None:
    topic = send(server)
    texts(options_of(server, topic, storePath=json.dumps({"broker-b": "/nowhere"})))
    assert pulls == [(0, 16), (0, 14)], "broker-a has no path"
    del pulls[:]
    texts(options_of(server, topic, storePath=json.dumps({"broker-a": str(store)})))
    assert pulls == [(0, 1), (0, 1)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"storePath": "{"}, "option storePath must be a folder or JSON such as"),
        ({"storePath": '{"a":1}'}, "option storePath must be a folder or JSON such as"),
        (
            {"storePath": "/x", "filterType": "SQL92", "subExpression": "a > 1"},
            "only a broker can filter by SQL92",
        ),
    ],
)
def test_a_wrong_store_path_is_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        read_source_options({"nameServer": "h:1", "subscribe": "T", **options}, is_stream=False)


def test_a_folder_that_is_not_a_store_is_named(server: EmbeddedServer, tmp_path: Path) -> None:
    topic = send(server, 4)
    with pytest.raises(OptionError, match=r"option storePath: .*nothing.* is not a folder"):
        texts(options_of(server, topic, storePath=str(tmp_path / "nothing")))
