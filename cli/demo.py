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
from pocketmq.client import ClientError, Producer, PullConsumer
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
CONSOLE: Final = Console(highlight=False)

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
        asyncio.run(_play())
    except (DemoError, ClientError) as error:
        refuse(error, program="pocketmq demo", code=FAILED)


async def _play() -> None:
    server = await asyncio.create_subprocess_exec(*SERVER, stdout=subprocess.PIPE)
    try:
        namesrv_addr = await _address(server)
        CONSOLE.print(f"A broker is up: name server {namesrv_addr}, store in a temporary folder.\n")
        await _acts(namesrv_addr)
    finally:
        if server.returncode is None:
            server.terminate()
        await server.wait()
    CONSOLE.print("To start one for your own clients:  [bold]pocketmq serve[/]")
    CONSOLE.print("To ask it the same question:        [bold]pocketmq explain -g GROUP -t TOPIC[/]")


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


async def _acts(namesrv_addr: str) -> None:
    """The four acts, one after the other."""
    async with (
        PullConsumer("new-group", namesrv_addr=namesrv_addr) as newcomer,
        PullConsumer("old-group", namesrv_addr=namesrv_addr) as regular,
    ):
        broker = await _make_topic(newcomer)
        await _send(namesrv_addr)
        await _show(newcomer, "1. A new group asks a young topic: its first messages are still in memory")
        await broker.call(UpdateBrokerConfig(), b"memorySizeBytes=100000\n")
        await _show(
            newcomer, "2. The memory budget is lowered to 30 % of 100 kB: the same messages are cold now"
        )
        await broker.call(UpdateBrokerConfig(), b"fileReservedTime=0\n")
        await broker.call(DeleteExpiredCommitLog())
        await _show(newcomer, "3. The old log files are deleted: the queues no longer begin at 0")
        for queue in await regular.queues(TOPIC):
            read = await regular.pull(queue, await regular.min_offset(queue), max_count=2)
            await regular.commit(queue, read.next_offset)
        await _show(regular, "4. Another group has read two messages of each queue and committed its offsets")
        broker.close()


async def _make_topic(reader: PullConsumer) -> Connection:
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


async def _send(namesrv_addr: str) -> None:
    async with Producer("demo-producer", namesrv_addr=namesrv_addr) as producer:
        for number in range(MESSAGES):
            body = f"order {number} ".encode().ljust(BODY_BYTES, b".")
            await producer.send(TOPIC, body, tags="created", keys=f"order-{number}", queue_id=number % QUEUES)
    CONSOLE.print(f"{MESSAGES} messages of {BODY_BYTES} bytes are sent to {TOPIC}, {QUEUES} queues.\n")


async def _show(reader: PullConsumer, title: str) -> None:
    """One act: the verdicts as a table, each checked by asking and reading as a consumer does."""
    CONSOLE.print(f"[bold]{title}[/]")
    verdicts = await reader.explain(TOPIC)
    for verdict in verdicts:
        await _check(reader, verdict)
    table = Table()
    for name in ("queue", "min..max", "broker answers", "LAST starts at", "rule"):
        table.add_column(name)
    for one in verdicts:
        answer = "not found" if one.offset is None else str(one.offset)
        limits = f"{one.min_offset}..{one.max_offset}"
        table.add_row(str(one.queue_id), limits, answer, str(one.from_last), one.rule)
    CONSOLE.print(table)
    CONSOLE.print(f"Queue 0, {verdicts[0].rule}: {verdicts[0].because}.\n")


async def _check(reader: PullConsumer, verdict: Verdict) -> None:
    queue = next(queue for queue in await reader.queues(TOPIC) if queue.queue_id == verdict.queue_id)
    answered = await reader.committed(queue)
    if answered != verdict.offset:
        raise DemoError(f"queue {queue.queue_id}: explained {verdict.offset}, answered {answered}")
    start = verdict.from_last
    if start is None or start >= verdict.max_offset:
        return
    result = await reader.pull(queue, start, max_count=1)
    if not result.messages or result.messages[0].queue_offset != start:
        raise DemoError(f"queue {queue.queue_id}: no message at offset {start}, where reading should start")
