"""`pocketmq demo`: where does a consumer group start reading, and why?

A server process on free ports and a client over TCP play the puzzle through: a young topic, cold data, deleted
history, a stored offset. Each act asks the broker for its verdicts and then reads where the verdict says a group
starts. A verdict that is not true ends the demo with exit code 1.
"""

import asyncio
import subprocess
import sys
from typing import Final

import click
from pocketmq.client import ClientError, MessageQueue, Producer, PullConsumer
from pocketmq.client.connections.connection import Connection
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC
from pocketmq.protocol.requests.admin import UpdateBrokerConfig
from pocketmq.protocol.requests.offset import Verdict
from pocketmq.protocol.requests.topic import DeleteExpiredCommitLog, UpdateAndCreateTopic
from rich.console import Console
from rich.table import Table

from .mistakes import FAILED, refuse

TOPIC: Final = "Orders"
QUEUES: Final = 3
MESSAGES: Final = 300
BODY_BYTES: Final = 1000
LOG_FILE_BYTES: Final = 64 * 1024
START_SECONDS: Final = 10.0

SERVER: Final = (
    *(sys.executable, "-m", "pocketmq.cli"),
    *(["serve", "--port", "0", "--namesrv-port", "0", "--ephemeral", "--log-level", "error", "--set"]),
    f"mappedFileSizeCommitLog={LOG_FILE_BYTES}",
)


class DemoError(Exception):
    """The broker did not do what it said, or did not start."""


@click.command()
def demo() -> None:
    """Show where a consumer group starts reading, and why, on a broker of its own."""
    try:
        asyncio.run(_play(Console(highlight=False)))
    except (DemoError, ClientError) as error:
        refuse(error, program="pocketmq demo", code=FAILED)


async def _play(console: Console) -> None:
    server = await asyncio.create_subprocess_exec(*SERVER, stdout=subprocess.PIPE)
    try:
        namesrv_addr = await _address(server)
        console.print(f"A broker is up: name server {namesrv_addr}, store in a temporary folder.\n")
        await _Acts(console, namesrv_addr).play()
    finally:
        if server.returncode is None:
            server.terminate()
        await server.wait()
    console.print("To start one for your own clients:  [bold]pocketmq serve[/]")
    console.print("To ask it the same question:        [bold]pocketmq explain -g GROUP -t TOPIC[/]")


async def _address(server: asyncio.subprocess.Process) -> str:
    assert server.stdout is not None
    try:
        async with asyncio.timeout(START_SECONDS):
            line = (await server.stdout.readline()).decode()
    except TimeoutError:
        raise DemoError(f"the server did not start within {START_SECONDS:g} s") from None
    name, _, address = line.strip().partition("=")
    if name != "NAMESRV_ADDR":
        raise DemoError("the server did not start; the lines above say why")
    return address


class _Acts:
    """The four acts, one after the other."""

    def __init__(self, console: Console, namesrv_addr: str) -> None:
        self._console = console
        self._namesrv_addr = namesrv_addr
        self._act = 0

    async def play(self) -> None:
        async with (
            PullConsumer("new-group", namesrv_addr=self._namesrv_addr) as newcomer,
            PullConsumer("old-group", namesrv_addr=self._namesrv_addr) as regular,
        ):
            broker = await self._make_topic(newcomer)
            await self._send()
            await self._show(
                newcomer, "A new group asks a young topic: its first messages are still in memory"
            )
            await self._set(broker, "memorySizeBytes=100000")
            await self._show(
                newcomer, "The memory budget is lowered to 30 % of 100 kB: the same messages are cold now"
            )
            await self._set(broker, "fileReservedTime=0")
            await broker.call(DeleteExpiredCommitLog())
            await self._show(newcomer, "The old log files are deleted: the queues no longer begin at 0")
            for queue in await regular.queues(TOPIC):
                read = await regular.pull(queue, await regular.min_offset(queue), max_count=2)
                await regular.commit(queue, read.next_offset)
            await self._show(
                regular, "Another group has read two messages of each queue and committed its offsets"
            )
            broker.close()

    async def _make_topic(self, reader: PullConsumer) -> Connection:
        queue = (await reader.queues(AUTO_CREATE_TOPIC))[0]
        broker = await Connection.connect(await reader.broker_address(queue))
        await broker.call(
            UpdateAndCreateTopic(
                topic=TOPIC,
                default_topic=AUTO_CREATE_TOPIC,
                read_queue_nums=QUEUES,
                write_queue_nums=QUEUES,
                perm=6,
                topic_filter_type="SINGLE_TAG",
            )
        )
        return broker

    async def _send(self) -> None:
        async with Producer("demo-producer", namesrv_addr=self._namesrv_addr) as producer:
            for number in range(MESSAGES):
                body = f"order {number} ".encode().ljust(BODY_BYTES, b".")
                keys = f"order-{number}"
                await producer.send(TOPIC, body, tags="created", keys=keys, queue_id=number % QUEUES)
        self._console.print(
            f"{MESSAGES} messages of {BODY_BYTES} bytes are sent to {TOPIC}, {QUEUES} queues.\n"
        )

    async def _set(self, broker: Connection, line: str) -> None:
        await broker.call(UpdateBrokerConfig(), f"{line}\n".encode())

    async def _show(self, reader: PullConsumer, title: str) -> None:
        """One act: the verdicts as a table, each checked by asking and reading as a consumer does."""
        self._act += 1
        self._console.print(f"[bold]{self._act}. {title}[/]")
        table = Table()
        for name in ("queue", "min..max", "broker answers", "LAST starts at", "rule"):
            table.add_column(name)
        reasons: list[str] = []
        for verdict in await reader.explain(TOPIC):
            await _check(reader, verdict)
            answer = "not found" if verdict.offset is None else str(verdict.offset)
            limits = f"{verdict.min_offset}..{verdict.max_offset}"
            table.add_row(str(verdict.queue_id), limits, answer, str(verdict.from_last), verdict.rule)
            reasons.append(f"{verdict.rule}: {verdict.because}")
        self._console.print(table)
        self._console.print(f"Queue 0, {reasons[0]}.\n")


async def _check(reader: PullConsumer, verdict: Verdict) -> None:
    queue = next(queue for queue in await reader.queues(TOPIC) if queue.queue_id == verdict.queue_id)
    answered = await reader.committed(queue)
    if answered != verdict.offset:
        raise DemoError(f"queue {queue.queue_id}: explained {verdict.offset}, answered {answered}")
    start = verdict.from_last
    if start is None or start >= verdict.max_offset:
        return
    await _check_first(reader, queue, start)


async def _check_first(reader: PullConsumer, queue: MessageQueue, start: int) -> None:
    result = await reader.pull(queue, start, max_count=1)
    if not result.messages or result.messages[0].queue_offset != start:
        raise DemoError(f"queue {queue.queue_id}: no message at offset {start}, where reading should start")
