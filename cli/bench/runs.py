"""What `pocketmq bench` runs: producers, a consumer, or both, measured from send to listener.

The clients are the usual ones with default settings, so the figures are what a program gets.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from pocketmq.client import (
    ClientError,
    ConsumeFromWhere,
    Message,
    MessageExt,
    Producer,
    PullConsumer,
    PushConsumer,
)

from .latencies import Latencies

LONGEST_TO_END_SECONDS: Final = 10.0
"""After the last send, wait this long for messages that are still on their way to the consumer."""
ROUTE_SECONDS: Final = 10.0
"""A topic created by a send is in the route table within this time."""
SHORTEST_WARM_UP_SECONDS: Final = 0.2
"""The first message to a listener uses new connections."""
STAMP_BYTES: Final = 8
"""A body begins with the time it was made, in epoch ns."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The options. `rate` is messages a second over all tasks, 0 for no limit; `batch` is messages in one send."""

    client: dict[str, Any]
    topic: str
    body_bytes: int
    tasks: int
    in_flight: int
    batch: int
    rate: float
    seconds: float
    warm_up: float
    follow: bool
    group: str


class Progress(msgspec.Struct):
    """What a run has done so far; the progress bar reads it."""

    done: int = 0
    failed: int = 0
    share: float = 0.0
    """Part of the whole run, 0 to 1."""
    first_error: str = ""


class Measured(msgspec.Struct, kw_only=True):
    """The result of one run. Rates are messages a second; CPU time is this process's."""

    mode: str
    messages: int
    failed: int
    seconds: float
    per_second: float
    cpu_seconds: float
    rss_begin_bytes: int
    rss_end_bytes: int
    latencies: dict[str, Latencies] = {}


class _Meter:
    """Measures time, CPU time and memory from `begin` to `end`."""

    def __init__(self) -> None:
        self.began = self._cpu = 0.0
        self._rss = 0

    def begin(self) -> None:
        self.began, self._cpu, self._rss = time.perf_counter(), time.process_time(), resident_bytes()

    def end(self, mode: str, messages: int, failed: int, **latencies: Latencies) -> Measured:
        seconds = time.perf_counter() - self.began
        return Measured(
            mode=mode,
            messages=messages,
            failed=failed,
            seconds=seconds,
            per_second=messages / seconds if seconds else 0.0,
            cpu_seconds=time.process_time() - self._cpu,
            rss_begin_bytes=self._rss,
            rss_end_bytes=resident_bytes(),
            latencies=latencies,
        )


def resident_bytes() -> int:
    """Memory of this process in bytes; 0 if the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


# -- producers


async def produce(plan: Plan, progress: Progress) -> Measured:
    """Send for `seconds` after the warm-up; latency from the call to the answer."""
    async with Producer("pocketmq-bench", **plan.client) as producer:
        await ensure_topic(producer, plan.topic)
        if plan.warm_up:
            await _Load(producer, plan, Progress()).run(plan.warm_up)
        load, meter = _Load(producer, plan, progress), _Meter()
        meter.begin()
        await load.run(plan.seconds)
        return meter.end("producer", progress.done, progress.failed, send=load.latencies)


async def ensure_topic(producer: Producer, topic: str) -> None:
    """Create the topic by a first send, and wait until its own route is known."""
    await producer.send(topic, b"first")
    async with asyncio.timeout(ROUTE_SECONDS):
        while True:
            try:
                await producer.queues(topic)
                return
            except ClientError:
                await asyncio.sleep(0.05)


class _Load:
    """`tasks` loops that send; each keeps `in_flight` sends under way."""

    def __init__(self, producer: Producer, plan: Plan, progress: Progress) -> None:
        self._producer = producer
        self._plan = plan
        self._progress = progress
        self._filling = b"x" * max(0, plan.body_bytes - STAMP_BYTES)
        self._send = self._one if plan.batch == 1 else self._many
        self.latencies = Latencies()
        self._end = 0.0

    async def run(self, seconds: float) -> None:
        began = time.perf_counter()
        self._end = began + seconds
        lines = self._plan.tasks * self._plan.in_flight
        async with asyncio.TaskGroup() as group:
            if self._plan.in_flight > 1 and self._plan.batch == 1:
                for number in range(self._plan.tasks):
                    group.create_task(self._pipeline(began, number))
            else:
                for number in range(lines):
                    group.create_task(self._loop(began, number, lines))
            group.create_task(self._tell(began, seconds))

    async def _tell(self, began: float, seconds: float) -> None:
        while (now := time.perf_counter()) < self._end:
            self._progress.share = (now - began) / seconds
            await asyncio.sleep(min(0.1, self._end - now))

    async def _loop(self, began: float, number: int, lines: int) -> None:
        """One send after the other; with a rate, each at its own time, however long the previous one took."""
        step = lines * self._plan.batch / self._plan.rate if self._plan.rate else 0.0
        due = began + step * number / lines
        while True:
            now = time.perf_counter()
            if step:
                if due > now:
                    await asyncio.sleep(due - now)
                began_send, due = due, due + step
                now = time.perf_counter()
            else:
                began_send = now
            if now >= self._end:
                return
            await self._timed(self._send, began_send)

    async def _timed(self, send: Callable[[], Awaitable[object]], began: float) -> None:
        try:
            await send()
        except ClientError as error:
            self._note_failure(error)
            return
        self._progress.done += self._plan.batch
        self.latencies.add(time.perf_counter() - began, self._plan.batch)

    async def _pipeline(self, began: float, number: int) -> None:
        """Up to `in_flight` futures, without a task for each."""
        plan, progress, add = self._plan, self._progress, self.latencies.add
        loop = asyncio.get_running_loop()
        step = plan.tasks / plan.rate if plan.rate else 0.0
        due = began + step * number / plan.tasks
        under_way = 0
        room: asyncio.Future[None] | None = None

        def ended(future: asyncio.Future[object], since: float) -> None:
            nonlocal under_way
            under_way -= 1
            error = future.exception()
            if error is not None:
                self._note_failure(error)
            else:
                progress.done += 1
                add(time.perf_counter() - since)
            if room is not None and not room.done() and under_way <= plan.in_flight // 2:
                room.set_result(None)

        while (now := time.perf_counter()) < self._end:
            if step:
                if due > now:
                    await asyncio.sleep(due - now)
                now, due = due, due + step
            if under_way >= plan.in_flight:
                room = loop.create_future()
                await room
                room = None
                continue
            under_way += 1
            sent = self._producer.send_nowait(plan.topic, self._body())
            sent.add_done_callback(lambda future, since=now: ended(future, since))  # type: ignore[misc]
        while under_way:
            room = loop.create_future()
            await room

    def _body(self) -> bytes:
        return time.time_ns().to_bytes(STAMP_BYTES, "big") + self._filling

    async def _one(self) -> None:
        await self._producer.send(self._plan.topic, self._body())

    async def _many(self) -> None:
        body, topic = self._body(), self._plan.topic
        await self._producer.send_batch([Message(topic, body) for _ in range(self._plan.batch)])

    def _note_failure(self, error: BaseException) -> None:
        self._progress.failed += self._plan.batch
        if not self._progress.first_error:
            self._progress.first_error = str(error)


# -- consumers


async def consume(plan: Plan, progress: Progress) -> Measured:
    """Read the topic from its beginning as a new group: the backlog, or with `follow` for `seconds`."""
    async with PullConsumer("pocketmq-bench", **plan.client) as reader:
        queues = await reader.queues(plan.topic)
        backlog = 0
        for queue in queues:
            backlog += await reader.max_offset(queue) - await reader.min_offset(queue)
    if not backlog and not plan.follow:
        raise ClientError(f"topic {plan.topic} holds no messages: send some first, or --follow")
    finished = asyncio.Event()
    first = last = 0.0

    async def listener(message: MessageExt) -> None:
        nonlocal first, last
        last = time.perf_counter()
        if not progress.done:
            first = last
        progress.done += 1
        if progress.done == backlog and not plan.follow:
            finished.set()

    meter = _Meter()
    meter.begin()
    async with _consumer(plan, listener):
        while not finished.is_set() and (passed := time.perf_counter() - meter.began) < plan.seconds:
            progress.share = passed / plan.seconds if plan.follow else progress.done / backlog
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(0.1, plan.seconds - passed)):
                    await finished.wait()
        join = Latencies()
        if progress.done:
            join.add(first - meter.began)
        measured = meter.end("consumer", progress.done, 0, first_delivery=join)
    if progress.done > 1:  # the rate counts deliveries only, not joining and leaving the group
        measured.per_second = (progress.done - 1) / max(last - first, 1e-9)
    return measured


def _consumer(plan: Plan, listener: Callable[[MessageExt], Awaitable[None]]) -> PushConsumer:
    return PushConsumer(
        plan.group or _new_group(),
        listener,
        **plan.client,
        subscription={plan.topic: "*"},
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )


async def end_to_end(plan: Plan, progress: Progress) -> Measured:
    """Send while a consumer listens; latency of the sends, and from the send to the listener."""
    travelled = Latencies()
    began_ns = arrived = 0
    expected = -1
    everything = asyncio.Event()

    async def listener(message: MessageExt) -> None:
        nonlocal arrived
        sent_ns = int.from_bytes(message.body[:STAMP_BYTES], "big")
        if sent_ns >= began_ns > 0:  # without the warm-up
            arrived += 1
            travelled.add((time.time_ns() - sent_ns) / 1e9)
            if arrived == expected:
                everything.set()

    plan = msgspec.structs.replace(plan, group=plan.group or _new_group())
    async with Producer("pocketmq-bench", **plan.client) as producer:
        await ensure_topic(producer, plan.topic)
        consumer = _consumer(plan, listener)
        consumer.suspend()
        async with consumer:
            await _skip_history(plan)
            consumer.resume()
            await consumer.wait_assigned()
            await _Load(producer, plan, Progress()).run(max(plan.warm_up, SHORTEST_WARM_UP_SECONDS))
            load, meter = _Load(producer, plan, progress), _Meter()
            began_ns = time.time_ns()
            meter.begin()
            await load.run(plan.seconds)
            expected = progress.done
            if arrived < expected:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LONGEST_TO_END_SECONDS):
                        await everything.wait()
            lost = max(0, expected - arrived)
            return meter.end(
                "end-to-end", arrived, progress.failed + lost, send=load.latencies, end_to_end=travelled
            )


async def _skip_history(plan: Plan) -> None:
    """Let a group that has not read yet begin at the end: a new group would read the whole of a young topic."""
    async with PullConsumer(plan.group, **plan.client) as reader:
        for queue in await reader.queues(plan.topic):
            await reader.commit(queue, await reader.max_offset(queue))


def _new_group() -> str:
    return f"pocketmq-bench-{time.time_ns()}"
