"""The loads of `bench.java_ratio`: the programs, and how one of them is measured against one broker.

Most are official benchmark programs, which send one header over and over. `OwnMessages.java` uses the official clients
for messages of which no two are alike, delayed ones, messages that are sent back, ordered and pop consumers.

The program of a load starts, warms up and is then measured for some seconds. What it sent is counted at the broker (the
sum of the topic's max offsets), what it read by the broker's consumer offsets: the programs themselves print sliding
means, in which earlier seconds are mixed. Beside each count is the processor time that the broker used meanwhile.
"""

import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from conformance.official.programs import compile_java, example
from conformance.servers.processes import Running
from conformance.servers.server import BROKER_PORT, NAMESRV_ADDR, Server

from .frame import cpu_seconds

FULL_SPEED = ("-XX:TieredStopAtLevel=4", "-Xms1g", "-Xmx1g")
"""The tests run Java with its quick compiler; a comparison has to give it the good one."""

TOPIC = "BenchmarkTest"
"""The programs' own topic: 1024 queues on every broker."""
BESIDE_TOPIC, BACKLOG_TOPIC = "BenchBeside", "BenchBacklog"
OWN_TOPIC, OWN_BACKLOG_TOPIC, SENT_BACK_TOPIC = "BenchOwn", "BenchOwnBacklog", "BenchSentBack"
POP_TOPIC = "BenchPop"
POP_BACKLOG = 50_000
"""A pop and its acks cost a broker twenty times as much as a pull."""
OWN_MESSAGES: Final = Path(__file__).with_name("OwnMessages.java")
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
"""Where delayed messages and those sent back wait: what reaches it is counted."""
OWN_TOPIC_QUEUES = 8

BESIDE_GROUP, SENT_BACK_GROUP = "bench_beside", "bench_sent_back"

CREATE_TOPIC, CONSUME_STATS, TOPIC_STATS = 17, 208, 202
START_SECONDS, POLL_SECONDS = 60.0, 0.1
DRAINED_BEFORE, DRAINED_AFTER = 0.1, 0.9
"""A drain is measured between these shares of the backlog: its start is a JVM's, its end a few queues'."""


class LoadFailed(Exception):
    """The load did nothing in time; the text says which."""


@dataclass(frozen=True)
class Load:
    """One row: a benchmark program and its words."""

    name: str
    program: str = "benchmark.Producer"
    words: tuple[str, ...] = ()
    servers: str = "plain"
    """Which settings and which processes the two sides have: a key of `java_sides.SERVERS`."""
    topic: str = TOPIC
    counted: str = ""
    """The topic whose new messages are counted, if it is another one."""
    beside_consumer: bool = False
    drains: bool = False
    is_pop: bool = False
    """Only 5.x brokers know pops."""

    @property
    def is_own(self) -> bool:
        """Whether the program is `OwnMessages.java`."""
        return not self.program


def own_sends(threads: int, name: str, servers: str = "plain", *, level: int = 0) -> Load:
    words = ("send", str(threads), "128", str(level))
    return Load(name, "", words, servers, OWN_TOPIC, counted=SCHEDULE_TOPIC if level else "")


def own_drain(how: str, name: str, topic: str = OWN_BACKLOG_TOPIC) -> Load:
    return Load(name, "", ("read", how), topic=topic, drains=True, is_pop=how == "pop")


def batches(threads: int, name: str, servers: str = "plain") -> Load:
    return Load(name, "benchmark.BatchProducer", ("-w", str(threads), "-b", "16", "-s", "128"), servers)


def sends(threads: int, size: int, name: str, servers: str = "plain") -> Load:
    return Load(name, words=("-w", str(threads), "-s", str(size)), servers=servers)


LOADS = (
    sends(64, 128, "sync send, 64 threads, 128 B"),
    sends(1, 128, "sync send, 1 thread, 128 B"),
    sends(64, 1024, "sync send, 64 threads, 1 KB"),
    Load(
        "sync send, 32 threads, 1 KB, beside a push consumer",
        words=("-w", "32", "-s", "1024"),
        topic=BESIDE_TOPIC,
        beside_consumer=True,
    ),
    batches(16, "batch of 16, 16 threads, 128 B"),
    batches(64, "batch of 16, 64 threads, 128 B"),
    Load(
        "backlog drain, push consumer", "benchmark.Consumer", ("-w", "20"), topic=BACKLOG_TOPIC, drains=True
    ),
    Load("transactions, 32 threads, 128 B", "benchmark.TransactionProducer", ("-w", "32", "-s", "128")),
    sends(64, 128, "SYNC_FLUSH: sync send, 64 threads, 128 B", "SYNC_FLUSH"),
    batches(16, "SYNC_FLUSH: batch of 16, 16 threads, 128 B", "SYNC_FLUSH"),
    sends(64, 128, "ASYNC_MASTER with one slave: sync send, 64 threads, 128 B", "with slave"),
    own_sends(64, "own properties: sync send, 64 threads, 128 B"),
    own_sends(1, "own properties: sync send, 1 thread, 128 B"),
    own_sends(64, "own properties, delay level 1: sync send, 64 threads, 128 B", level=1),
    Load(
        "own properties: each message sent back",
        "",
        ("read", "later"),
        topic=SENT_BACK_TOPIC,
        counted=SCHEDULE_TOPIC,
    ),
    own_drain("concurrent", "own properties: backlog drain, push consumer"),
    own_drain("ordered", "own properties: backlog drain, ordered push consumer"),
    own_drain("pop", "own properties: backlog drain, pop consumer", POP_TOPIC),
    own_sends(64, "SYNC_FLUSH, own properties: sync send, 64 threads, 128 B", "SYNC_FLUSH"),
    own_sends(64, "with slave, own properties: sync send, 64 threads, 128 B", "with slave"),
)

PRIMING, PRIMING_MESSAGES = LOADS[0], 100_000


@dataclass(frozen=True)
class Timing:
    """Seconds of one measurement, and messages of the backlog that is drained."""

    warm_up: float
    seconds: float
    backlog: int
    clients: str = "5.5"
    """Whose benchmark programs are run, against both lines."""


@dataclass(frozen=True)
class Measured:
    """One measurement: messages, the seconds and the broker's processor seconds they took, and what a consumer read."""

    messages: int
    seconds: float
    processor: float
    read: int = 0

    @property
    def per_second(self) -> float:
        return self.messages / self.seconds

    @property
    def microseconds(self) -> float:
        """The broker's processor time a message."""
        return self.processor / self.messages * 1e6 if self.messages else 0.0


def stored(server: Server, topic: str) -> int:
    """Messages the topic has had: the sum of its max offsets; 0 if it does not exist yet."""
    reply = server.call(TOPIC_STATS, topic=topic)
    return sum(int(number) for number in re.findall(rb'"maxOffset":(\d+)', reply.body))


def consumed(server: Server, topic: str, group: str) -> int:
    """Messages of the topic below the group's consumer offsets, which each pull moves; 0 before the first."""
    reply = server.call(CONSUME_STATS, consumerGroup=group, topic=topic)
    return sum(max(int(number), 0) for number in re.findall(rb'"consumerOffset":(-?\d+)', reply.body))


def create_topic(server: Server, topic: str) -> None:
    server.call(
        CREATE_TOPIC,
        topic=topic,
        defaultTopic="TBW102",
        readQueueNums=OWN_TOPIC_QUEUES,
        writeQueueNums=OWN_TOPIC_QUEUES,
        perm=6,
        topicFilterType="SINGLE_TAG",
        topicSysFlag=0,
        order=False,
    )


def measure(server: Server, load: Load, broker_pid: int, timing: Timing) -> Measured:
    """One measurement of one load against one running server; LoadFailed, ProgramFailed or OSError if it fails."""
    if load.topic != TOPIC:
        create_topic(server, load.topic)
    if load.drains or load.topic == SENT_BACK_TOPIC:
        fill_backlog(server, load, timing)
    if load.drains:
        return measure_drain(server, load, broker_pid, timing)
    return measure_sends(server, load, broker_pid, timing)


def measure_sends(server: Server, load: Load, broker_pid: int, timing: Timing) -> Measured:
    with contextlib.ExitStack() as programs:
        if load.beside_consumer:
            consumer = start_consumer(server, load, BESIDE_GROUP, timing)
            programs.callback(consumer.kill)
            consumer.wait_for("Consumer Started", timeout=START_SECONDS)
        counted = load.counted or load.topic
        before = stored(server, counted)
        program = start(server, load, SENT_BACK_GROUP, timing)
        programs.callback(program.kill)
        wait_until(lambda: stored(server, counted) > before, program, "stored nothing")
        time.sleep(timing.warm_up)
        read_before = consumed(server, load.topic, BESIDE_GROUP) if load.beside_consumer else 0
        count = stored(server, counted)
        began, processor = time.monotonic(), cpu_seconds(broker_pid)
        time.sleep(timing.seconds)
        elapsed, used = time.monotonic() - began, cpu_seconds(broker_pid) - processor
        count = stored(server, counted) - count
        read = consumed(server, load.topic, BESIDE_GROUP) - read_before if load.beside_consumer else 0
    if not count:
        raise LoadFailed(f"{load.name}: nothing was stored in {elapsed:.1f} s")
    return Measured(count, elapsed, used, read)


def measure_drain(server: Server, load: Load, broker_pid: int, timing: Timing) -> Measured:
    """Read the backlog with a new group; what lies between its first tenth and its last."""
    group = f"bench_drain_{time.monotonic_ns()}"
    backlog = stored(server, load.topic)
    begin_reading = start if load.is_own else start_consumer
    consumer = begin_reading(server, load, group, timing)

    def reached(share: float) -> tuple[int, float, float]:
        wait_until(lambda: consumed(server, load.topic, group) > backlog * share, consumer, "does not read")
        return consumed(server, load.topic, group), time.monotonic(), cpu_seconds(broker_pid)

    try:
        begin, end = reached(DRAINED_BEFORE), reached(DRAINED_AFTER)
    finally:
        consumer.kill()
    return Measured(end[0] - begin[0], end[1] - begin[1], end[2] - begin[2], end[0] - begin[0])


def prime(server: Server) -> None:
    """Messages in all queues of the topic: an official broker needs ten seconds for its thousand first files."""
    program = start(server, PRIMING, "", Timing(0, 0, 0))
    try:
        wait_until(
            lambda: stored(server, TOPIC) >= PRIMING_MESSAGES, program, "did not store the first messages"
        )
    finally:
        program.kill()


def fill_backlog(server: Server, load: Load, timing: Timing) -> None:
    """Batches to the topic until it has the backlog, unless an earlier round stored it."""
    wanted = POP_BACKLOG if load.is_pop else timing.backlog
    if stored(server, load.topic) >= wanted:
        return
    filling = Load("the backlog", "", ("fill", "16", "128")) if load.is_own else batches(16, "the backlog")
    program = start(server, replace(filling, topic=load.topic), "", timing)
    try:
        wait_until(lambda: stored(server, load.topic) >= wanted, program, "did not store the backlog")
    finally:
        program.kill()


def start(server: Server, load: Load, group: str, timing: Timing) -> Running:
    if not load.is_own:
        words = (*load.words, "-n", NAMESRV_ADDR, "-t", load.topic)
        return server.programs.start_java(example(timing.clients, load.program), *words, java_opts=FULL_SPEED)
    mode, *rest = load.words
    if mode == "read":
        rest = [group, *rest, f"127.0.0.1:{BROKER_PORT}"]
    program = compile_java("5.5", OWN_MESSAGES)
    return server.programs.start_java(program, mode, NAMESRV_ADDR, load.topic, *rest, java_opts=FULL_SPEED)


def start_consumer(server: Server, load: Load, group: str, timing: Timing) -> Running:
    words = ("-w", "20", "-n", NAMESRV_ADDR, "-t", load.topic, "-g", group, "-p", "false")
    return server.programs.start_java(
        example(timing.clients, "benchmark.Consumer"), *words, java_opts=FULL_SPEED
    )


def wait_until(happened: Callable[[], bool], program: Running, complaint: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not happened():
        if not program.alive or time.monotonic() > deadline:
            raise program.failed(complaint)
        time.sleep(POLL_SECONDS)
