"""What `pocketmq bench` runs: producers, a consumer, or both, measured from send to listener.

The clients are the usual ones with default settings, so the figures are what a program gets.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
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


class Run:
    """One run: a progress bar reads it from the start, the figures are whole at the end. CPU time is this process's."""

    def __init__(self) -> None:
        self.messages = self.failed = 0
        self.first_error = ""
        self.share = 0.0
        """Part of the whole run, 0 to 1."""
        self.seconds = self.per_second = self.cpu_seconds = 0.0
        self.rss_begin_bytes = self.rss_end_bytes = 0
        self.latencies: dict[str, Latencies] = {}
        self.began = self._cpu_began = 0.0

    def begin(self) -> None:
        self.began, self._cpu_began = time.perf_counter(), time.process_time()
        self.rss_begin_bytes = resident_bytes()

    def end(self, **latencies: Latencies) -> None:
        self.seconds = time.perf_counter() - self.began
        self.cpu_seconds = time.process_time() - self._cpu_began
        self.per_second = self.messages / self.seconds if self.seconds else 0.0
        self.rss_end_bytes = resident_bytes()
        self.latencies = latencies

    def add_failure(self, error: BaseException, count: int) -> None:
        self.failed += count
        self.first_error = self.first_error or str(error)

    @property
    def cpu_us_per_message(self) -> float:
        return self.cpu_seconds / self.messages * 1e6 if self.messages else 0.0


def resident_bytes() -> int:
    """Memory of this process in bytes; 0 if the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


# -- producers


async def produce(plan: Plan, run: Run) -> None:
    """Send for `seconds` after the warm-up; latency from the call to the answer."""
    async with Producer("pocketmq-bench", **plan.client) as producer:
        await ensure_topic(producer, plan.topic)
        if plan.warm_up:
            await _Load(producer, plan, Run()).send_for(plan.warm_up)
        load = _Load(producer, plan, run)
        run.begin()
        await load.send_for(plan.seconds)
        run.end(send=load.latencies)


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

    def __init__(self, producer: Producer, plan: Plan, run: Run) -> None:
        self._producer = producer
        self._plan = plan
        self._run = run
        self._filling = b"x" * max(0, plan.body_bytes - STAMP_BYTES)
        self._send = self._one if plan.batch == 1 else self._many
        self.latencies = Latencies()
        self._began = self._end = 0.0

    async def send_for(self, seconds: float) -> None:
        plan = self._plan
        self._began = time.perf_counter()
        self._end = self._began + seconds
        has_futures = plan.in_flight > 1 and plan.batch == 1
        lines = plan.tasks if has_futures else plan.tasks * plan.in_flight
        async with asyncio.TaskGroup() as group:
            for number in range(lines):
                starts = self._starts(number, lines)
                group.create_task(self._send_futures(starts) if has_futures else self._send_each(starts))
            group.create_task(self._tell(seconds))

    async def _tell(self, seconds: float) -> None:
        while (now := time.perf_counter()) < self._end:
            self._run.share = (now - self._began) / seconds
            await asyncio.sleep(min(0.1, self._end - now))

    async def _starts(self, number: int, lines: int) -> AsyncIterator[float]:
        """When each send of a line begins: at once, or with a rate at its own time, however long others took."""
        step = lines * self._plan.batch / self._plan.rate if self._plan.rate else 0.0
        due = self._began + step * number / lines
        while (now := time.perf_counter()) < self._end:
            if not step:
                yield now
                continue
            if due > now:
                await asyncio.sleep(due - now)
            if time.perf_counter() >= self._end:
                return
            yield due
            due += step

    async def _send_each(self, starts: AsyncIterator[float]) -> None:
        """One send after the other."""
        count = self._plan.batch
        async for start in starts:
            try:
                await self._send()
            except ClientError as error:
                self._run.add_failure(error, count)
                continue
            self._run.messages += count
            self.latencies.add(time.perf_counter() - start, count)

    async def _send_futures(self, starts: AsyncIterator[float]) -> None:
        """Up to `in_flight` futures, without a task for each."""
        plan, run, add = self._plan, self._run, self.latencies.add
        loop = asyncio.get_running_loop()
        under_way = 0
        room: asyncio.Future[None] | None = None

        def ended(future: asyncio.Future[object], since: float) -> None:
            nonlocal under_way
            under_way -= 1
            error = future.exception()
            if error is not None:
                run.add_failure(error, 1)
            else:
                run.messages += 1
                add(time.perf_counter() - since)
            if room is not None and not room.done() and under_way <= plan.in_flight // 2:
                room.set_result(None)

        async for start in starts:
            if under_way >= plan.in_flight:
                room = loop.create_future()
                await room
                room = None
            since = start if plan.rate else time.perf_counter()
            under_way += 1
            sent = self._producer.send_nowait(plan.topic, self._body())
            sent.add_done_callback(lambda future, since=since: ended(future, since))  # type: ignore[misc]
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


# -- consumers


async def consume(plan: Plan, run: Run) -> None:
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
        if not run.messages:
            first = last
        run.messages += 1
        if run.messages == backlog and not plan.follow:
            finished.set()

    run.begin()
    async with _consumer(plan, listener):
        while not finished.is_set() and (passed := time.perf_counter() - run.began) < plan.seconds:
            run.share = passed / plan.seconds if plan.follow else run.messages / backlog
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(0.1, plan.seconds - passed)):
                    await finished.wait()
        join = Latencies()
        if run.messages:
            join.add(first - run.began)
        run.end(first_delivery=join)
    if run.messages > 1:  # the rate counts deliveries only, not joining and leaving the group
        run.per_second = (run.messages - 1) / max(last - first, 1e-9)


def _consumer(plan: Plan, listener: Callable[[MessageExt], Awaitable[None]]) -> PushConsumer:
    return PushConsumer(
        plan.group or _new_group(),
        listener,
        **plan.client,
        subscription={plan.topic: "*"},
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )


async def end_to_end(plan: Plan, run: Run) -> None:
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
            await _Load(producer, plan, Run()).send_for(max(plan.warm_up, SHORTEST_WARM_UP_SECONDS))
            load = _Load(producer, plan, run)
            began_ns = time.time_ns()
            run.begin()
            await load.send_for(plan.seconds)
            expected = run.messages
            if arrived < expected:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LONGEST_TO_END_SECONDS):
                        await everything.wait()
            run.failed += max(0, expected - arrived)
            run.messages = arrived
            run.end(send=load.latencies, end_to_end=travelled)


async def _skip_history(plan: Plan) -> None:
    """Let a group that has not read yet begin at the end: a new group would read the whole of a young topic."""
    async with PullConsumer(plan.group, **plan.client) as reader:
        for queue in await reader.queues(plan.topic):
            await reader.commit(queue, await reader.max_offset(queue))


def _new_group() -> str:
    return f"pocketmq-bench-{time.time_ns()}"
