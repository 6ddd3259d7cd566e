"""Ranges read and batches sent: nothing lost where connections end, and losses said where messages are gone.

An embedded server, or one that ends connections; no Spark.
"""

import asyncio
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

import pyarrow as pa
from pocketmq.pipeline.brokers.batch_sender import BatchSender
from pocketmq.pipeline.brokers.range_reader import RangeReader
from pocketmq.pipeline.brokers.read_planner import Planner
from pocketmq.pipeline.brokers.wire import Wire
from pocketmq.pipeline.errors import (
    DataLossError,
    OptionError,
    PipelineError,
    SendError,
    SourceUnreachable,
)
from pocketmq.pipeline.planning.positions import Queue
from pocketmq.pipeline.planning.ranges import Range
from pocketmq.pipeline.planning.topic_options import SourceOptions, read_source_options
from pocketmq.pipeline.records.batch_encoder import bodies_of, elements, property_texts, row_ids
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.store.clock import VirtualClock
from pocketmq.testing import EmbeddedServer, RocketMQ

from reader_account import KEYS, only_reader


class DroppingProxy:
    """Stands before a broker and ends the connection at every so many frames of a code, in its own thread."""

    def __init__(self, target: str, code: int, every: int) -> None:
        self._target = target
        self._code = code
        self._every = every
        self.dropped = 0
        self._seen = 0
        self._loop = asyncio.new_event_loop()
        self._ready: threading.Event = threading.Event()
        self.address = ""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(30)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        self._loop.run_forever()
        server.close()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self._target.partition(":")
        up_reader, up_writer = await asyncio.open_connection(host, int(port))
        back = asyncio.create_task(_pump(up_reader, writer))
        cutter = FrameCutter()
        try:
            while data := await reader.read(65536):
                for command in cutter.feed(data):
                    if self._is_time(command):
                        return
                    up_writer.write(encode_frame(command))
        finally:
            back.cancel()
            up_writer.close()
            writer.close()

    def _is_time(self, command: Command) -> bool:
        self._seen += command.code == self._code
        if command.code != self._code or self._seen % self._every:
            return False
        self.dropped += 1
        return True


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)


Proxied = Callable[[int, int], tuple[Wire, DroppingProxy]]


@pytest.fixture(scope="module")
def rocketmq() -> Iterator[RocketMQ]:
    """Of this file alone: the session's server would stand to the end of the suite."""
    with EmbeddedServer() as server:
        yield RocketMQ(server)


@pytest.fixture
def proxied(rocketmq: RocketMQ, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxied]:
    """proxied(code, every): a wire whose way to the broker ends at every so many requests of a code."""
    made: list[DroppingProxy] = []

    def make(code: int, every: int) -> tuple[Wire, DroppingProxy]:
        proxy = DroppingProxy(rocketmq.server.broker_addr, code, every)
        made.append(proxy)
        wire = Wire(rocketmq.namesrv_addr)
        opened = wire._open()
        get = opened.get

        async def through_proxy(address: str) -> object:
            return await get(proxy.address if address == rocketmq.server.broker_addr else address)

        monkeypatch.setattr(opened, "get", through_proxy)
        return wire, proxy

    yield make
    for proxy in made:
        proxy.stop()


def options(rocketmq: RocketMQ, topic: str, **more: str) -> SourceOptions:
    return read_source_options(
        {"nameServer": rocketmq.namesrv_addr, "subscribe": topic, **more}, is_stream=False
    )


def read(wire: Wire, chosen: SourceOptions, ranges: list[Range] | None = None) -> list[str]:
    planner = Planner(wire, chosen)
    parts = planner.batch() if ranges is None else ranges
    return [
        body.decode()
        for one in parts
        for records in RangeReader(wire, one, chosen).batches()
        for body in records.column("body").to_pylist()
    ]


def test_a_connection_that_ends_in_mid_read_loses_nothing(rocketmq: RocketMQ, proxied: Proxied) -> None:
    topic = rocketmq.topic("dropped", queues=1)
    for number in range(40):
        rocketmq.send(topic, f"m{number:02}")
    wire, proxy = proxied(11, 7)
    chosen = options(rocketmq, topic, pullBatchSize="2", pullInFlight="2", decodeRows="5")
    assert read(wire, chosen) == [f"m{number:02}" for number in range(40)]
    assert proxy.dropped >= 2


def test_a_connection_that_ends_in_mid_send_loses_nothing(rocketmq: RocketMQ, proxied: Proxied) -> None:
    topic = rocketmq.topic("sent", queues=2)
    wire, proxy = proxied(320, 4)
    sender = BatchSender(wire, group="g", in_flight=3, timeout_ms=10_000, retry_timeout_ms=30_000)
    for first in range(0, 100, 5):
        batch = pa.RecordBatch.from_pydict({"body": [f"m{first + n:02}".encode() for n in range(5)]})
        texts = property_texts(batch, row_ids("w", first, 5))
        sender.send_batch(topic, b"".join(elements(bodies_of(batch), texts).to_pylist()), 5)
    sender.finish()
    messages = rocketmq.messages(topic)
    assert {one.text for one in messages} == {f"m{number:02}" for number in range(100)}
    assert len({one.message_id for one in messages}) == 100, "what was sent twice has one id"
    assert proxy.dropped >= 2


def test_messages_of_deleted_files_are_a_loss_or_left_out(tmp_path: Path) -> None:
    clock = VirtualClock(1_700_000_000_000)
    settings = {"mappedFileSizeCommitLog": 4096, "fileReservedTime": 1, "mappedFileSizeConsumeQueue": 600}
    with EmbeddedServer(settings, store=tmp_path, clock=clock) as server:
        one = RocketMQ(server)
        topic = one.topic("old", queues=1)
        for number in range(60):
            one.send(topic, f"m{number:02}" + "." * 100)
        queue = Queue(topic, "broker-a", 0)
        chosen = options(one, topic)
        with Wire(one.namesrv_addr).closing() as wire:
            whole = Range(queue, 0, 60)
            assert len(read(wire, chosen, [whole])) == 60
            while server.call(server.broker.store.delete_oldest_log_file):
                low = wire.bounds([queue], 30_000)[queue][0]
                if low > 20:
                    break
            with pytest.raises(DataLossError, match=rf"old.* queue 0: {low} messages, offsets \[0, {low}\)"):
                read(wire, chosen, [whole])
            tolerant = options(one, topic, failOnDataLoss="false")
            assert [text[:3] for text in read(wire, tolerant, [whole])] == [
                f"m{n:02}" for n in range(low, 60)
            ]


@pytest.mark.parametrize(
    ("option", "usual", "said", "left"),
    [
        # No range begins there, so that the loss of the messages before it would be no range's either.
        ("startingOffsets", -2, r"offsets \[2, 99\), do not exist", ["m1", "m3"]),
        ("endingOffsets", -1, r"offsets \[2, 99\)", ["m0", "m2", "m1", "m3"]),
    ],
)
def test_an_offset_beyond_the_end_is_a_loss_or_left_out(
    rocketmq: RocketMQ, option: str, usual: int, said: str, left: list[str]
) -> None:
    topic = rocketmq.topic(option, queues=2)
    for number in range(4):
        rocketmq.send(topic, f"m{number}", queue_id=number % 2)
    given = {option: f'{{"{topic}":{{"0":99,"1":{usual}}}}}'}
    with Wire(rocketmq.namesrv_addr).closing() as wire:
        with pytest.raises(DataLossError, match=rf"queue 0: 97 messages, {said}"):
            read(wire, options(rocketmq, topic, **given))
        tolerant = options(rocketmq, topic, **given, failOnDataLoss="false")
        assert read(wire, tolerant) == left


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ('{"times":1,"another":1}', "exactly the topics that are read; wrong or missing: another"),
        ('{"another":1}', "wrong or missing: another, times"),
        ("{}", "wrong or missing: times"),
        ('{"times":-5}', "epoch ms, 0 or more, got -5"),
        ('{"times":1.5}', "epoch ms, 0 or more, got 1.5"),
        ('{"times":true}', "epoch ms, 0 or more, got True"),
        ('{"times":{"0":-1}}', "epoch ms, 0 or more, got -1"),
        ('{"times":{"0":1.5}}', 'JSON such as {"T":1700000000000}'),
        ('{"times":{"1":5}}', "missing: times broker-a queue 0; unknown: times broker-a queue 1"),
        ("[]", "JSON such as"),
    ],
)
def test_times_that_are_none_or_of_other_topics_are_refused(
    times: str, said: str, rocketmq: RocketMQ
) -> None:
    queue = Queue("times", "broker-a", 0)
    chosen = options(rocketmq, "times", startingOffsetsByTimestamp=times)
    with pytest.raises(OptionError, match=f"option startingOffsetsByTimestamp.*{re.escape(said)}"):
        Planner(Wire(rocketmq.namesrv_addr), chosen).start({queue: (0, 5)})


def test_a_topic_that_no_broker_has_or_makes_is_named_by_its_own_name() -> None:
    with EmbeddedServer(autoCreateTopicEnable=False) as server, Wire(server.namesrv_addr).closing() as wire:
        sender = BatchSender(wire, group="g", in_flight=1, timeout_ms=1000, retry_timeout_ms=0)
        sender.send_one("Unmade", b"x", "", 0)
        with pytest.raises(
            SendError, match="no broker has topic Unmade, and none creates topics automatically"
        ):
            sender.finish()


def test_queues_without_messages_and_without_new_ones_are_no_failure(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("sparse", queues=4)
    for text in ("one", "two"):
        rocketmq.send(topic, text, queue_id=2)
    start = f'{{"{topic}":{{"0":0,"1":-1,"2":1,"3":-2}}}}'
    with Wire(rocketmq.namesrv_addr).closing() as wire:
        assert read(wire, options(rocketmq, topic)) == ["one", "two"]
        assert read(wire, options(rocketmq, topic, startingOffsets=start, minPartitions="9")) == ["two"]
        empty = rocketmq.topic("empty", queues=3)
        assert read(wire, options(rocketmq, empty, maxRecordsPerPartition="1")) == []


def test_a_broker_that_does_not_answer_is_given_up_in_the_time_the_options_say(
    rocketmq: RocketMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = rocketmq.topic("silent", queues=1)
    rocketmq.send(topic, "one")
    with socket.create_server(("127.0.0.1", 0)) as silent, Wire(rocketmq.namesrv_addr).closing() as wire:
        opened = wire._open()
        get = opened.get

        async def away(address: str) -> object:
            broker = f"127.0.0.1:{silent.getsockname()[1]}"
            return await get(broker if address == rocketmq.server.broker_addr else address)

        monkeypatch.setattr(opened, "get", away)
        chosen = options(rocketmq, topic, pullTimeoutMs="50", retryTimeoutMs="0")
        with pytest.raises(SourceUnreachable, match=r"did not answer PULL_MESSAGE within 0.05 s, given up"):
            read(wire, chosen, [Range(Queue(topic, "broker-a", 0), 0, 1)])
        sender = BatchSender(wire, group="g", in_flight=1, timeout_ms=60, retry_timeout_ms=0)
        sender.send_one(topic, b"x", "", 0)
        with pytest.raises(SendError, match=r"did not answer SEND_MESSAGE_V2 within 0.06 s, given up"):
            sender.finish()


def test_rows_are_sent_no_faster_than_allowed(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("slow", queues=1)
    with Wire(rocketmq.namesrv_addr).closing() as wire:
        begun = time.monotonic()
        sender = BatchSender(
            wire, group="g", in_flight=4, timeout_ms=10_000, retry_timeout_ms=5_000, rows_per_second=100
        )
        for _ in range(20):
            sender.send_one(topic, b"x", "", 0)
        sender.finish()
        assert time.monotonic() - begun >= 0.2
    assert len(rocketmq.messages(topic)) == 20


def test_a_send_is_given_up_after_so_many_retries() -> None:
    with Wire("127.0.0.1:1").closing() as wire:
        sender = BatchSender(
            wire, group="g", in_flight=1, timeout_ms=1000, retry_timeout_ms=60_000, retries=1
        )
        sender.send_one("T", b"x", "", 0)
        with pytest.raises(SendError, match=r"cannot connect .*, given up after 1 retries"):
            sender.finish()


def test_a_name_server_that_is_not_there_is_said_after_the_retries() -> None:
    with (
        Wire("127.0.0.1:1").closing() as wire,
        pytest.raises(SourceUnreachable, match="given up after 200 ms"),
    ):
        wire.queues("T", 200)


def test_a_topic_that_is_not_there_is_named(rocketmq: RocketMQ) -> None:
    with Wire(rocketmq.namesrv_addr).closing() as wire, pytest.raises(OptionError, match="no-such-topic"):
        wire.queues("no-such-topic", 500)


@pytest.mark.parametrize(
    ("expression", "is_on", "said"),
    [
        ("TAGS ===", True, "broker-a cannot filter by 'TAGS ==='"),
        ("TAGS = 'A'", False, "does not support consumer to filter message by SQL92"),
    ],
)
def test_an_expression_the_broker_cannot_use_is_refused_when_planning(
    expression: str, is_on: bool, said: str
) -> None:
    """Its pulls are answered as if there were none, so that a wrong expression would read everything."""
    with EmbeddedServer(enablePropertyFilter=is_on) as server:
        rocketmq = RocketMQ(server)
        chosen = options(rocketmq, rocketmq.topic("T"), filterType="SQL92", subExpression=expression)
        with (
            Wire(server.namesrv_addr).closing() as wire,
            pytest.raises(OptionError, match=f"option subExpression: .*{said}"),
        ):
            Planner(wire, chosen).batch()


def test_a_broker_with_access_control_is_read_with_keys_over_tls_and_not_without(tmp_path: Path) -> None:
    with EmbeddedServer(store=tmp_path / "store") as server:
        rocketmq = RocketMQ(server)
        topic = rocketmq.topic("T", queues=1)
        rocketmq.send(topic, "a body")
    with EmbeddedServer(only_reader(tmp_path), store=tmp_path / "store") as server:
        rocketmq = RocketMQ(server)
        for given, said in (
            (KEYS, None),
            ({**KEYS, "rocketmq.secretKey": "another"}, "signature"),
            ({}, "accessKey"),
        ):
            chosen = options(rocketmq, topic, **given)
            with Wire(server.namesrv_addr, chosen.access).closing() as wire:
                if said is None:
                    assert read(wire, chosen) == ["a body"]
                else:
                    with pytest.raises(PipelineError, match=f"(?i){said}"):
                        read(wire, chosen)


def test_offsets_of_a_group_that_nobody_made_are_stored(rocketmq: RocketMQ) -> None:
    topic = rocketmq.topic("progress", queues=1)
    queue = Queue(topic, "broker-a", 0)
    rocketmq.send(topic, "one")
    with Wire(rocketmq.namesrv_addr).closing() as wire:
        assert wire.committed("nobody-made-me", [queue], 30_000) == {queue: None}
        wire.commit("nobody-made-me", {queue: 1}, 30_000)
        assert wire.committed("nobody-made-me", [queue], 30_000) == {queue: 1}
