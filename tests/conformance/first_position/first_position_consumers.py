"""Official push consumers that start on prepared topics, judged by the first offset each consumes of each queue.

One JVM a client version holds all consumers of a server (java/FirstPosition.java). Each consumer is a group with its
own ConsumeFromWhere and subscribes to all topics of a phase:

    hot      as a young broker is            history   after the first log file was deleted
    cold     nothing counts as in memory

A topic gets two batches of messages, seconds apart, so that a consumeTimestamp falls between them. When every queue
has its first position, each gets one more message, the marker: a consumer that skips all history consumes it first.
Topics and groups carry the client version in their names, so one version's marker is never another's history. The
`first_position_*rows.py` explain the states themselves.
"""

import math
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence

from conformance import JAVA
from conformance.first_position.first_position_old_rows import GONE, TRIMMED
from conformance.first_position.first_position_rows import QUEUES
from conformance.official.programs import compile_java
from conformance.on_demand import EVERYTHING
from conformance.servers.processes import Running
from conformance.servers.raw_client import RawClient, wait_until
from conformance.servers.server import Server

CLIENTS = ("4.9", "5.5")
WHERES = ("LAST", "FIRST", "TIMESTAMP")
SOURCE = JAVA / "FirstPosition.java"
BATCHES_APART_MS = 2500
READY_TIMEOUT_S = 60.0

Place = tuple[str, str, int]
"""(where, topic, queue id)."""

# Topic and queue -> first offsets of LAST, FIRST and TIMESTAMP.
# Two batches hold 3 and 2 messages, those of a retry topic 1 and 1.
Table = Mapping[tuple[str, int], tuple[int, int, int]]
YOUNG, STORED, EMPTY, RESET, RETRY = "young", "stored", "empty", "reset", "%RETRY%"
ADDED_QUEUE = 2
"""Of the topic STORED: added later, with one message in it before any consumer came."""
HOT: Table = {
    (YOUNG, 0): (0, 0, 0),
    (YOUNG, 1): (0, 0, 0),
    (STORED, 0): (3, 3, 3),
    (STORED, ADDED_QUEUE): (0, 0, 0),
    (EMPTY, 0): (0, 0, 0),
    (RESET, 0): (0, 0, 0),
    (RETRY, 0): (0, 0, 0),
}
COLD: Table = {
    (YOUNG, 0): (5, 0, 3),
    (YOUNG, 1): (5, 0, 3),
    (STORED, 0): (3, 3, 3),
    (STORED, ADDED_QUEUE): (1, 0, 0),
    (EMPTY, 0): (0, 0, 0),
    (RESET, 0): (5, 0, 3),
    (RETRY, 0): (0, 0, 2),
}
# Consumers whose TIMESTAMP lies in the future; there the 4.9 line finds the message nearest in time, the last one.
HISTORY: Table = {(TRIMMED, 0): (10, 5, 9), (GONE, 0): (5, 5, 5)}
HISTORY_IN_55: Table = {(TRIMMED, 0): (10, 5, 10), (GONE, 0): (5, 5, 5)}
RESET_IN_55: Table = {(RESET, 0): (2, 2, 2)}
TABLES: dict[str, dict[str, Table]] = {
    "4.9": {"hot": HOT, "cold": COLD, "history": HISTORY},
    "5.5": {
        "hot": {**HOT, **RESET_IN_55},
        "cold": {**HOT, **RESET_IN_55},  # nothing is ever cold on Java 17
        "history": HISTORY_IN_55,
    },
}
PHASES = ("hot", "cold")


def expected(line: str, phase: str, version: str) -> dict[Place, int]:
    """The first offsets for consumers of a client version; without the queues that take them half a minute."""
    return {
        (where, kind, queue_id): offsets[at]
        for (kind, queue_id), offsets in TABLES[line][phase].items()
        for at, where in enumerate(WHERES)
        if not _is_slow(line, version, where, kind)
    }


def _is_slow(line: str, version: str, where: str, kind: str) -> bool:
    """Client 4.9.8 corrects a moved offset only after 10 s and at its next rebalance, 20 s apart.

    Confirmed on both official brokers; POCKETMQ_INTEROP_ALL=1 waits for them again.
    """
    if version != "4.9" or EVERYTHING:
        return False
    if kind == RESET:
        return line == "5.5"
    return kind in (TRIMMED, GONE) and where == "FIRST"


def topic_name(kind: str, phase: str, client: str) -> str:
    return f"{kind}_{phase}_{client.replace('.', '')}"


def group_name(where: str, phase: str, client: str) -> str:
    return f"{where}_{phase}_{client.replace('.', '')}"


def _topics(phase: str, client: str) -> Iterator[tuple[str, Sequence[int]]]:
    """Topics that get messages, and in which queues."""
    yield topic_name(YOUNG, phase, client), (0, 1)
    yield topic_name(STORED, phase, client), (0,)
    yield topic_name(RESET, phase, client), (0,)


def fill_first_batches(client: RawClient) -> None:
    """Messages that must exist for a while before the consumers start. If the consumers' start created the retry
    topic, they would be ready half a minute later."""
    for version in CLIENTS:
        for where in WHERES:
            client.update_group(group_name(where, "history", version))
            client.update_topic(RETRY + group_name(where, "history", version), 1)
        for phase in PHASES:
            client.update_topic(topic_name(EMPTY, phase, version), 1)
            for topic, queues in _topics(phase, version):
                client.update_topic(topic, len(queues))
                client.fill(topic, queues, 3)
            for where in WHERES:
                client.update_group(group_name(where, phase, version))
                client.update_topic(RETRY + group_name(where, phase, version), 1)
                client.fill(RETRY + group_name(where, phase, version), [0], 1)


def time_between(client: RawClient) -> float:
    """A full second after all first batches, in seconds since 1970; the second batches are nearer to it."""
    last = RETRY + group_name(WHERES[-1], PHASES[-1], CLIENTS[-1])
    first_batches_ms = client.earliest_store_time(last, 0)
    wait_until(lambda: time.time() * 1000 > first_batches_ms + BATCHES_APART_MS, "the clock never advanced")
    return math.floor(time.time())


def fill_second_batches(client: RawClient, version: str) -> None:
    """The messages after the consumeTimestamp, the queue added, the offsets stored and the resets pending."""
    for phase in PHASES:
        for topic, queues in _topics(phase, version):
            client.fill(topic, queues, 2)
        stored, reset = topic_name(STORED, phase, version), topic_name(RESET, phase, version)
        client.update_topic(stored, ADDED_QUEUE + 1)
        client.fill(stored, [ADDED_QUEUE], 1)
        for where in WHERES:
            group = group_name(where, phase, version)
            client.fill(RETRY + group, [0], 1)
            assert client.commit(group, stored, 0, 3).code == 0
            refused = client.reset(group, reset, 0, 2).code != 0
            assert refused == (client.server.emulates == "4.9")


class Consumers:
    """The consumers of one client version on one server."""

    def __init__(self, server: Server, version: str) -> None:
        self.version = version
        self._running: Running = server.programs.start_java(compile_java(version, SOURCE))

    def start(self, phase: str, timestamp_s: float, wanted: Collection[Place]) -> None:
        """A consumer for each ConsumeFromWhere wanted; returns when all their first positions are decided."""
        stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(timestamp_s))
        words = " ".join(
            f"{topic}:{queues}" for topic, queues in subscribed(phase, self.version, wanted).items()
        )
        wheres = {where for where, _, _ in wanted}
        for where in wheres:
            self._running.say(
                f"{group_name(where, phase, self.version)} CONSUME_FROM_{_spelled(where)} {stamp} {words}"
            )
        for where in wheres:
            self._running.wait_for(f"^READY {group_name(where, phase, self.version)}$", READY_TIMEOUT_S)

    def first_offsets(self, phase: str, wanted: Collection[Place]) -> dict[Place, int]:
        """(where, kind or topic, queue id) -> first offset consumed, of the wanted ones; waits for them."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            found = self._told(phase)
            if found.keys() >= set(wanted) or time.monotonic() > deadline:
                return {place: offset for place, offset in found.items() if place in wanted}
            time.sleep(0.05)

    def _told(self, phase: str) -> dict[Place, int]:
        suffix = f"_{phase}_{self.version.replace('.', '')}"
        pattern = re.compile(rf"^FIRST (\w+?){suffix} (\S+) (\d+) (\d+)$", re.MULTILINE)
        firsts: dict[Place, int] = {}
        for where, topic, queue_id, offset in pattern.findall(self._running.output):
            kind = RETRY if topic.startswith(RETRY) else topic.removesuffix(suffix)
            firsts[where, kind, int(queue_id)] = int(offset)
        return firsts

    def __enter__(self) -> "Consumers":
        return self

    def __exit__(self, *_: object) -> None:
        self._running.kill()  # a shutdown would store their offsets, which no test reads


def subscribed(phase: str, version: str, wanted: Collection[Place]) -> dict[str, int]:
    """The topics of a phase that are wanted, and how many queues each has by then."""
    kinds = {kind for _, kind, _ in wanted}
    queues = {YOUNG: 2, STORED: ADDED_QUEUE + 1, EMPTY: 1, RESET: 1, TRIMMED: QUEUES, GONE: QUEUES}
    return {topic_name(kind, phase, version): count for kind, count in queues.items() if kind in kinds}


def send_markers(client: RawClient, phase: str, version: str, wanted: Collection[Place]) -> None:
    for topic, queues in subscribed(phase, version, wanted).items():
        client.fill(topic, range(queues), 1, b"marker")
    if phase in PHASES:
        for where in WHERES:
            client.fill(RETRY + group_name(where, phase, version), [0], 1, b"marker")


def _spelled(where: str) -> str:
    return where if where == "TIMESTAMP" else f"{where}_OFFSET"
