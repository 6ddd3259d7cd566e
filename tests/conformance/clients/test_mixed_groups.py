"""Java and Python members of one group: a second member shares the queues, a successor continues at the stored offset.

Members of both kinds print the same lines (java/GroupMember.java, python_member_program.py).
"""

import re
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from conformance import JAVA
from conformance.official.programs import compile_java
from conformance.servers.namespaces import clean_environment
from conformance.servers.processes import Running
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Names, Server

PROGRAM = Path(__file__).parent / "python_member_program.py"
QUERY_CONSUMER_OFFSET = 14
MEMBER = JAVA / "GroupMember.java"
SETTLE_S = 3.0
"""Members take over queues within a second or two; nothing tells from outside when they have."""
REPORT_MS = 5000
"""The official distance between two reports of offsets."""
DELAY_MS = {"orderly": 40, "concurrent": 160}
"""What makes 200 messages in four queues last for 1.6 s and more: in order one of a queue is under way, else 20 are. A
busy machine may take a second to see 40 of them and to say that it is time to leave."""
Place = tuple[int, int]
"""Queue id and offset."""


def member(
    server: Server,
    kind: str,
    topic: str,
    group: str,
    mode: str,
    *,
    delay_ms: int = 0,
    offsets: Path | None = None,
) -> Running:
    """Start a member of a kind: python, java-4.9 or java-5.5."""
    words = [topic, group, mode, str(REPORT_MS), str(delay_ms)]
    if kind == "python":
        more = {} if offsets is None else {"ROCKETMQ_CLIENT_LOCAL_OFFSET_STORE_DIR": str(offsets)}
        log = server.home / "run" / f"member-{group}-{time.monotonic_ns()}.out"
        argv = [sys.executable, str(PROGRAM), *words]
        return Running(server.namespace, argv, log, name="python member", env=clean_environment(**more))
    opts = [] if offsets is None else [f"-Drocketmq.client.localOffsetStoreDir={offsets}"]
    program = compile_java(kind.removeprefix("java-"), MEMBER)
    return server.programs.start_java(program, *words, java_opts=opts)


def seen(running: Running) -> list[Place]:
    return [(int(a), int(b)) for a, b in re.findall(r"^SEEN (\d+) (\d+)$", running.output, re.MULTILINE)]


def leave(running: Running) -> list[Place]:
    """End it cleanly; returns everything it saw."""
    running.say("leave")
    assert running.finish(60) == 0
    return seen(running)


def send(server: Server, topic: str, count: int) -> set[Place]:
    """To the four queues of the topic in turn."""
    places = set()
    with RawClient(server) as client:
        client.update_topic(topic, 4)
        for number in range(count):
            sent = client.send(topic, number % 4, b"%d" % number).fields
            places.add((int(sent["queueId"]), int(sent["queueOffset"])))
    return places


def stored_offsets(server: Server, topic: str, group: str) -> dict[int, int]:
    """The group's offset in each of the four queues."""
    replies = {
        queue_id: server.call(
            QUERY_CONSUMER_OFFSET, consumerGroup=group, topic=topic, queueId=queue_id
        ).fields["offset"]
        for queue_id in range(4)
    }
    return {queue_id: int(offset) for queue_id, offset in replies.items()}


def of_queues(places: list[Place]) -> dict[int, list[int]]:
    by_queue: defaultdict[int, list[int]] = defaultdict(list)
    for queue_id, offset in places:
        by_queue[queue_id].append(offset)
    return by_queue


@pytest.mark.parametrize(
    ("first", "second", "mode"),
    [
        ("python", "java-4.9", "orderly"),
        ("python", "java-5.5", "concurrent"),
        ("java-4.9", "python", "concurrent"),
        ("java-5.5", "python", "orderly"),
    ],
)
def test_a_second_member_shares_and_takes_over(
    chosen_side: Server, names: Names, first: str, second: str, mode: str
) -> None:
    """One alone, then both, then the other alone: no message is skipped, and those sent last arrive once.

    A concurrent member that joins reads offsets the other has not reported yet: between official members, too, what
    was consumed since the last report comes twice then. Locks keep that from ordered ones.
    """
    prefix = names("joined")
    topic, group = f"{prefix}_t", f"{prefix}_g"
    sent = send(chosen_side, topic, 40)
    one = member(chosen_side, first, topic, group, mode)
    one.wait_for(r"^SEEN ", 60, count=40)
    other = member(chosen_side, second, topic, group, mode)
    other.wait_for(r"^JOINED$", 60)
    time.sleep(SETTLE_S)
    before = len(set(seen(other)))
    shared = send(chosen_side, topic, 40)
    time.sleep(SETTLE_S)
    by_one = leave(one)
    time.sleep(SETTLE_S)
    last = send(chosen_side, topic, 40)
    other.wait_for(r"^SEEN ", 60, count=before + 60)
    time.sleep(1)
    by_other = leave(other)
    assert sent | shared | last <= {*by_one, *by_other}
    for places in (by_one, by_other):
        assert len({queue_id for queue_id, _ in set(places) & shared}) == 2, "not shared evenly"
    assert not last & set(by_one)
    assert [by_other.count(place) for place in last] == [1] * 40
    if mode == "orderly":
        assert len(by_one) + len(by_other) - len({*by_one, *by_other}) <= 4
        assert all(offsets == sorted(offsets) for offsets in of_queues(by_other).values())


@pytest.mark.parametrize(
    ("first", "second", "mode"),
    [
        ("java-4.9", "python", "orderly"),
        ("java-5.5", "python", "concurrent"),
        ("python", "java-4.9", "concurrent"),
        ("python", "java-5.5", "orderly"),
    ],
)
def test_a_successor_in_mid_stream_begins_at_the_stored_offset(
    chosen_side: Server, names: Names, first: str, second: str, mode: str
) -> None:
    prefix = names("replaced")
    topic, group = f"{prefix}_t", f"{prefix}_g"
    sent = send(chosen_side, topic, 200)
    with member(chosen_side, first, topic, group, mode, delay_ms=DELAY_MS[mode]) as before:
        before.wait_for(r"^SEEN ", 60, count=40)
        by_first = leave(before)
    offsets = stored_offsets(chosen_side, topic, group)
    assert sum(offsets.values()) < 200, (
        "the first member had read everything: nothing is left to replace it for"
    )
    by_second: list[Place] = []
    with member(chosen_side, second, topic, group, mode) as after:
        deadline = time.monotonic() + 60
        while not sent <= {*by_first, *by_second}:
            missing = sorted(sent - {*by_first, *by_second})
            if not after.alive or time.monotonic() > deadline:
                # A Java client whose first connection takes too long gives up with an error.
                raise after.failed(f"did not read {missing}")
            time.sleep(0.05)
            by_second = seen(after)
        by_second = leave(after)
    for queue_id, read in of_queues(by_second).items():
        assert min(read) == offsets[queue_id]
        assert sorted(set(read)) == list(range(offsets[queue_id], max(read) + 1)), "a message was skipped"
        if mode == "orderly":
            assert read == sorted(read)
    # A Java listener continues for a moment after its last report.
    if mode == "orderly" and first == "python":
        assert not set(by_first) & set(by_second)


@pytest.mark.parametrize("version", ["4.9", "5.5"])
def test_local_offsets_of_one_kind_are_read_by_the_other(
    ours: Server, names: Names, tmp_path: Path, version: str
) -> None:
    prefix = names("local")
    topic, group = f"{prefix}_t", f"{prefix}_g"
    java = f"java-{version}"
    for kind in ("python", java, "python", java):
        sent = send(ours, topic, 12)
        with member(ours, kind, topic, group, "broadcast", offsets=tmp_path) as running:
            running.wait_for(r"^SEEN ", 60, count=len(sent))
            time.sleep(1)  # if it had not found the other's offsets, more would arrive now
            places = leave(running)
        assert sorted(places) == sorted(sent), f"{kind} started from the beginning"
    (file,) = tmp_path.glob(f"*/{group}/offsets.json")
    assert f'"topic":"{topic}"' in file.read_text().replace(" ", "")
