"""Where a consumer group starts: the same questions to ours and to the official brokers of both lines, and official
push consumers that really start there.

The questions are `first_position_rows.py` and `first_position_old_rows.py`, the consumers are
`first_position_consumers.py`. The expectations are what the official brokers answer in the same run. Ours is set to
the official broker's rule for messages in memory: by distance in the 4.9 line, always hot in 5.5.0 on Java 17 and
later. Our default is tested at the end.
"""

import contextlib
import datetime
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conformance.conftest import EVERY_LINE, open_server
from conformance.daily import DAILY, JAVA_PROGRAMS, with_java
from conformance.first_position.explained_rules import SAID
from conformance.first_position.first_position_consumers import (
    CLIENTS,
    PHASES,
    Consumers,
    expected,
    fill_first_batches,
    fill_second_batches,
    send_markers,
    time_between,
    topic_name,
)
from conformance.first_position.first_position_old_rows import (
    COLD_ROWS,
    GONE,
    HISTORY_ROWS,
    TRIMMED,
    fill_history,
)
from conformance.first_position.first_position_rows import ROWS, UNKNOWN, ZERO, Place, Row
from conformance.servers.namespaces import clean_environment
from conformance.servers.processes import Running
from conformance.servers.raw_client import RawClient, wait_until
from conformance.servers.server import NAMESRV_ADDR, Names, Server, StartServer

NAMES = ("ours-4.9", "official-4.9", "ours-5.5", "official-5.5")
SMALL_LOG = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 6000,
    "fileReservedTime": 0,
    "deleteWhen": f"{(datetime.datetime.now().hour + 12) % 24:02}",
    "cleanResourceInterval": 1000,
}
MEMORY_RATIO = "accessMessageInMemoryMaxRatio"
DELETE_EXPIRED_COMMITLOG = 329
HISTORY_TIMEOUT_S = 120.0
"""Official brokers look for expired files from 60 s after their start on."""


def start(request: pytest.FixtureRequest, side: str, home: Path) -> Server:
    conf = {**SMALL_LOG, "residency": "always-hot"} if side == "ours-5.5" else SMALL_LOG
    server = open_server(request, side, home, broker_conf=conf)
    with contextlib.ExitStack() as unfinished:
        unfinished.enter_context(server)
        with RawClient(server) as client:
            trimmed, gone = (
                [kind, *(topic_name(kind, "history", version) for version in CLIENTS)]
                for kind in (TRIMMED, GONE)
            )
            fill_history(client, trimmed, gone)
            if with_java(request):
                fill_first_batches(client)
            assert client.call(DELETE_EXPIRED_COMMITLOG).code == 0
        unfinished.pop_all()
    return server


@pytest.fixture(scope="module")
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Server]]:
    """All sides at once, but only those that the chosen tests use."""
    wanted = [side for side in NAMES if any(f"[{side}" in item.name for item in request.session.items)]
    folder = tmp_path_factory.mktemp("first_position")
    if with_java(request):
        request.getfixturevalue("peers")  # here, and not in several threads at once
    with contextlib.ExitStack() as started, ThreadPoolExecutor() as pool:
        starts = {side: pool.submit(start, request, side, folder / side) for side in wanted}
        for begun in starts.values():
            if begun.exception() is None:
                started.callback(begun.result().close)
        yield {side: begun.result() for side, begun in starts.items()}


@pytest.fixture(params=EVERY_LINE)
def side(request: pytest.FixtureRequest, servers: dict[str, Server]) -> Server:
    return servers[request.param]


@pytest.fixture
def place(side: Server, names: Names) -> Iterator[Place]:
    with RawClient(side) as client:
        yield Place(client, names("group"), names("topic"))


@pytest.fixture
def all_cold(place: Place) -> Iterator[None]:
    """The broker counts no message as in memory."""
    place.client.update_setting(MEMORY_RATIO, 0)
    yield
    place.client.update_setting(MEMORY_RATIO, 40)


@pytest.fixture
def history_deleted(side: Server) -> None:
    """The first log file is gone, and the queues know."""
    with RawClient(side) as client:
        wait_until(
            lambda: client.min_offset(TRIMMED, 0) == 5,
            "the first log file was never deleted",
            HISTORY_TIMEOUT_S,
        )


CONDITIONS: dict[str, dict[str, Row]] = {
    "place": ROWS,
    "all_cold": COLD_ROWS,
    "history_deleted": HISTORY_ROWS,
}
"""Rows, by the fixture that they need."""
CASES = [pytest.param(name, row, id=key) for name, rows in CONDITIONS.items() for key, row in rows.items()]


@pytest.mark.parametrize(("condition", "row"), CASES)
def test_answer_of_the_table(request: pytest.FixtureRequest, place: Place, condition: str, row: Row) -> None:
    request.getfixturevalue(condition)
    row.prepare(place)
    assert place.ask() == row.expected(place.client.server.emulates)


@JAVA_PROGRAMS
@pytest.mark.parametrize("version", CLIENTS)
def test_official_consumers_start_there(side: Server, version: str) -> None:
    with RawClient(side) as client, Consumers(side, version) as consumers:
        between_s = time_between(client)
        fill_second_batches(client, version)
        tables = {phase: expected(side.emulates, phase, version) for phase in PHASES}
        consumers.start("hot", between_s, tables["hot"])
        client.update_setting(MEMORY_RATIO, 0)
        consumers.start("cold", between_s, tables["cold"])
        client.update_setting(MEMORY_RATIO, 40)
        for phase, table in tables.items():
            send_markers(client, phase, version, table)
        for phase, table in tables.items():
            assert consumers.first_offsets(phase, table) == table


# Offset pulled -> response code, nextBeginOffset, remark.
PULLS_OF_TRIMMED = {
    0: (21, "5", "OFFSET_TOO_SMALL"),
    4: (21, "5", "OFFSET_TOO_SMALL"),
    5: (0, "10", "FOUND"),
    10: (19, "10", "OFFSET_OVERFLOW_ONE"),
    11: (21, "10", "OFFSET_OVERFLOW_BADLY"),
}
PULLS_OF_GONE = {
    "4.9": {
        0: (20, "5", "MESSAGE_WAS_REMOVING"),
        4: (20, "5", "MESSAGE_WAS_REMOVING"),
        5: (19, "5", "OFFSET_OVERFLOW_ONE"),
        6: (21, "5", "OFFSET_OVERFLOW_BADLY"),
    },
    "5.5": {
        0: (21, "5", "OFFSET_TOO_SMALL"),
        4: (21, "5", "OFFSET_TOO_SMALL"),
        5: (19, "5", "OFFSET_OVERFLOW_ONE"),
        6: (21, "5", "OFFSET_OVERFLOW_BADLY"),
    },
}


@pytest.mark.usefixtures("history_deleted")
def test_queues_after_history_was_deleted(place: Place) -> None:
    client, is_49 = place.client, place.is_49
    hour_ago, in_an_hour = (int(time.time() + seconds) * 1000 for seconds in (-3600, 3600))

    def pulls(topic: str, offsets: dict[int, tuple[int, str, str]]) -> dict[int, tuple[int, str, str]]:
        replies = {offset: client.pull(place.group, topic, 0, offset) for offset in offsets}
        return {
            at: (reply.code, reply.fields["nextBeginOffset"], reply.remark) for at, reply in replies.items()
        }

    def numbers(topic: str) -> tuple[int, ...]:
        found = [client.search_offset(topic, 0, moment) for moment in (hour_ago, in_an_hour)]
        return client.min_offset(topic, 0), client.max_offset(topic, 0), *found

    client.update_group(place.group)
    # 4.9: the message nearest in time; a queue of which nothing is left keeps its min offset
    assert numbers(TRIMMED) == (5, 10, 5, 9 if is_49 else 10)
    assert numbers(GONE) == ((0, 5, 0, 0) if is_49 else (5, 5, 5, 5))
    assert pulls(TRIMMED, PULLS_OF_TRIMMED) == PULLS_OF_TRIMMED
    table = PULLS_OF_GONE[client.server.emulates]
    assert pulls(GONE, table) == table


@JAVA_PROGRAMS
@pytest.mark.usefixtures("history_deleted")
@pytest.mark.parametrize("version", CLIENTS)
def test_official_consumers_start_after_deleted_history(side: Server, version: str) -> None:
    table = expected(side.emulates, "history", version)
    with RawClient(side) as client, Consumers(side, version) as consumers:
        consumers.start("history", time.time() + 3600, table)
        send_markers(client, "history", version, table)
        assert consumers.first_offsets("history", table) == table


@DAILY
@pytest.mark.parametrize("side", ["ours-4.9", "ours-5.5"])
def test_ours_forgets_by_distance_from_the_log_end(fresh_server: StartServer, side: str) -> None:
    """Ours by default: a first message is hot until 30 % of memory lies behind it, in both lines."""
    server = fresh_server(side, broker_conf={"memorySizeBytes": 10_000})
    with RawClient(server) as client:
        place = Place(client, "group", "young")
        place.make_topic(messages=1, queues=1)
        assert place.ask() == ZERO
        client.fill("other", [0], 1, bytes(2_000))
        assert place.ask() == ZERO
        client.fill("other", [0], 1, bytes(2_000))
        assert place.ask() == UNKNOWN
        place.commit(0)
        assert place.ask() == ZERO


# -- `pocketmq explain` asks official brokers, which do not explain themselves

EXPLAIN = """
import sys
from pocketmq.cli.main import main
for words in sys.argv[1:]:
    main(["explain", *words.split(), "--json"], standalone_mode=False)
"""


def explained(side: Server, asked: dict[str, Place], log: Path) -> dict[str, tuple[str, int | None]]:
    """Rule and answer that `pocketmq explain` prints for the queue of each row."""
    words = [f"-g {place.group} -t {place.topic}" for place in asked.values()]
    argv = [sys.executable, "-c", EXPLAIN, *words]
    environment = clean_environment(NAMESRV_ADDR=NAMESRV_ADDR)
    running = Running(side.namespace, argv, log, name="explain", env=environment)
    assert running.finish(60) == 0, running.output
    lines = [json.loads(line) for line in running.output.splitlines() if line.startswith("[")]
    found = {}
    for (name, place), verdicts in zip(asked.items(), lines, strict=True):
        [verdict] = [one for one in verdicts if one["queue_id"] == place.queue_id]
        found[name] = verdict["rule"], verdict["answer"]
    return found


@JAVA_PROGRAMS
@pytest.mark.parametrize("condition", CONDITIONS)
def test_explain_names_the_rule_or_the_two_it_may_be(
    request: pytest.FixtureRequest, side: Server, names: Names, condition: str, tmp_path: Path
) -> None:
    request.getfixturevalue(condition)
    rows = CONDITIONS[condition]
    asked: dict[str, Place] = {}
    with RawClient(side) as client:
        for name, row in rows.items():
            if name in SAID:
                asked[name] = Place(client, names(f"group-{name}"), names(f"topic-{name}"))
                row.prepare(asked[name])
        found = explained(side, asked, tmp_path / "explain.out")
    line = 0 if side.emulates == "4.9" else 1
    expected = {name: (SAID[name][line], rows[name].expected(side.emulates).offset) for name in asked}
    if side.side == "ours":  # it explains itself: one rule
        for name, (rule, _) in list(found.items()):
            assert rule in expected[name][0].split(" or "), name
            found[name] = expected[name][0], found[name][1]
    assert found == expected


def test_every_row_whose_queue_has_a_route_says_what_explain_must_say() -> None:
    rows = {**ROWS, **COLD_ROWS, **HISTORY_ROWS}
    without = {name for name in rows if name not in SAID}
    assert SAID.keys() <= rows.keys()
    words = ("unknown", "deleted", "default", "beyond", "negative", "does_not_exist")
    assert {name for name in without if not any(word in name for word in words)} == set()
