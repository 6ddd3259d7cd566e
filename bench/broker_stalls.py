"""What blocks the event loop of a broker: pops, revival, expiry, reports, many members, topics, offsets, what waits.

    python -m bench.broker_stalls [--only pops,storm] [--folder DIR]

A broker runs in this process, its clients in another one. While a row works, a task that is due every 5 ms measures how
late it is, and each turn of the loop is measured as in `stalls.py`. The goal: 99.9 % at most 5 ms late, none 50 ms.
"""

import asyncio
import contextlib
import itertools
import multiprocessing
import selectors
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pocketmq.broker.membership.consumer_groups import Client
from pocketmq.broker.node import Node
from pocketmq.broker.process import freeze_start_objects, grow_descriptor_table, raise_file_limit
from pocketmq.protocol.bodies.client import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.pop import PopMessage
from pocketmq.protocol.requests.topic import UpdateAndCreateTopic
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.protocol.wire.schema import Request, to_fields
from pocketmq.store import NewMessage

from . import frame
from .scale_bench import TOPIC, frame_of, pull, send
from .stalls import TurnMeter, watched

PERIOD_SECONDS = 0.005
MESSAGES = 20_000
MEMBERS = 1000
TOPICS = 100_000
GROUPS = 100_000
QUEUES = 8
SILENT_CLIENTS = 20_000
TIMED_MESSAGES = 1_000_000
HALF_MESSAGES = 100_000
HELD_PULLS = 96_000
PULLING_CLIENTS = 24
"""A connection is not read any more while 4,096 of its calls wait."""


# -- the clients, in a process of their own


def ask(peer: socket.socket, request: Request[Any]) -> Command:
    return frame.ask(peer, request.code, to_fields(request))


def pop_all(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as peer:
        request = PopMessage(
            consumer_group="g", topic="orders", queue_id=-1, max_msg_nums=32, invisible_time=10_000
        )
        while ask(peer, request).code == 0:
            pass


def ask_reports(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as peer:
        for _ in range(3):
            for code in (28, 43, 21, 201):
                frame.ask(peer, code)
                time.sleep(0.2)


def join(address: tuple[str, int]) -> None:
    """A thousand members join one group at once, and read their notices."""
    consumer = ConsumerData(
        group_name="crowd",
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscription_data_set=[SubscriptionData(topic="orders", sub_string="*")],
    )
    with selectors.DefaultSelector() as selector:
        for number in range(MEMBERS):
            peer = socket.create_connection(address)
            selector.register(peer, selectors.EVENT_READ)
            heartbeat = HeartbeatData(client_id=f"member-{number}", consumer_data_set=[consumer])
            peer.sendall(encode_frame(Command(34, 1, fields=to_fields(HeartBeat()), body=heartbeat.encode())))
            drain(selector, 0)
        while drain(selector, 1.0):
            pass
        for key in list(selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]


def drain(selector: selectors.BaseSelector, seconds: float) -> int:
    ready = selector.select(seconds)
    for key, _ in ready:
        key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
    return len(ready)


def create_topics(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as peer:
        for number in range(20):
            request = UpdateAndCreateTopic(
                topic=f"new-{number}",
                default_topic="TBW102",
                read_queue_nums=8,
                write_queue_nums=8,
                perm=6,
                topic_filter_type="SINGLE_TAG",
                topic_sys_flag=0,
                order=False,
            )
            assert ask(peer, request).code == 0


def fill_and_hold(address: tuple[str, int]) -> None:
    """Store timed and half messages, hold pulls, then end some of these, until this process is ended."""
    producer = ProducerData(group_name="producers")
    heartbeat = frame_of(
        HeartBeat(), HeartbeatData(client_id="waiting", producer_data_set=[producer]).encode()
    )
    with contextlib.ExitStack() as sockets:
        sending, cutter = sockets.enter_context(socket.create_connection(address)), FrameCutter()
        seconds = (90 + number % 1000 for number in range(TIMED_MESSAGES))
        feed(sending, cutter, (send(TIMER_DELAY_SEC=str(each)) for each in seconds))
        born_ms = int(time.time() * 1000)
        halves = (send(born_ms=born_ms, TRAN_MSG="true", PGROUP="producers") for _ in range(HALF_MESSAGES))
        feed(sending, cutter, halves)
        feed(sending, cutter, [heartbeat])
        queues = HELD_PULLS // PULLING_CLIENTS
        for client in range(PULLING_CLIENTS):
            pulling = sockets.enter_context(socket.create_connection(address))
            pulling.sendall(
                b"".join(pull(f"held-{client}", queue_id, 0, holds=True) for queue_id in range(queues))
            )
        for queue_id in itertools.count():
            time.sleep(0.005)
            feed(sending, cutter, [send("held-0", queue_id % queues)])
            if queue_id % 1000 == 0:
                feed(sending, cutter, [heartbeat])


def feed(peer: socket.socket, cutter: FrameCutter, frames: Iterable[bytes]) -> None:
    """Send requests in parts, and read as many replies; checks of transactions are not answered."""
    rest = iter(frames)
    while part := list(itertools.islice(rest, 1000)):
        peer.sendall(b"".join(part))
        replies = 0
        while replies < len(part):
            replies += sum(command.is_reply for command in cutter.feed(peer.recv(1 << 16)))


async def clients(node: Node, work: Callable[[tuple[str, int]], None]) -> None:
    """Run it in another process until it ends."""
    host, _, port = node.bound_address.rpartition(":")
    process = multiprocessing.get_context("spawn").Process(target=work, args=((host, int(port)),))
    process.start()
    await until(lambda: not process.is_alive())
    assert process.exitcode == 0


async def until(condition: Callable[[], bool]) -> None:
    while True:
        if condition():
            return
        await asyncio.sleep(0.05)


# -- the rows


async def pops(node: Node, turns: TurnMeter) -> None:
    broker = node.broker
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=8, write_queue_nums=8))
    for number in range(MESSAGES):
        broker.store.append(NewMessage("orders", number % 8, b"x" * 100, b""))
    async with watched(f"popping {MESSAGES:,} messages", turns, PERIOD_SECONDS):
        await clients(node, pop_all)
    retry = "%RETRY%g_orders"
    async with watched("reviving them, not one is acknowledged", turns, PERIOD_SECONDS):
        await until(lambda: broker.store.max_offset(retry, 0) >= MESSAGES)


async def expiry(node: Node, turns: TurnMeter) -> None:
    broker = node.broker
    for connection in range(SILENT_CLIENTS // 1000):
        peer = await node.server.connect(node.bound_address)
        for number in range(1000):
            client = Client(peer, f"client-{connection}", "JAVA", 1, 0)
            broker.membership.producers.register(f"silent-{number}-{connection}", client)
    async with watched(f"{SILENT_CLIENTS:,} silent producers of 20 clients expire", turns, PERIOD_SECONDS):
        await until(lambda: not len(broker.membership.producers))


async def storm(node: Node, turns: TurnMeter) -> None:
    async with watched(f"{MEMBERS:,} members join a group and leave it", turns, PERIOD_SECONDS):
        await clients(node, join)


async def topics(node: Node, turns: TurnMeter) -> None:
    table = node.broker.topics
    for number in range(TOPICS):
        table._rows[f"topic-{number}"] = TopicConfig(topic_name=f"topic-{number}")
    table.update(TopicConfig(topic_name="first"))
    await node.broker.tables.wait_until_saved(table)
    await node.broker.cluster.registration.wait_until_sent()
    freeze_start_objects()
    async with watched(f"creating 20 topics beside {TOPICS:,}", turns, PERIOD_SECONDS):
        await clients(node, create_topics)
        await node.broker.tables.wait_until_saved(table)


async def offsets(node: Node, turns: TurnMeter) -> None:
    table = node.broker.offsets
    for group in range(GROUPS):
        for queue_id in range(QUEUES):
            table.commit(f"topic-{group % 1000}", f"group-{group}", queue_id, group)
    freeze_start_objects()
    async with watched(f"{GROUPS * QUEUES:,} offsets are saved three times", turns, PERIOD_SECONDS):
        for _ in range(150):
            table.commit("topic-1", "group-1", 0, 1)
            await asyncio.sleep(0.1)


async def reports(node: Node, turns: TurnMeter) -> None:
    for group in range(1000):
        node.broker.groups.find_or_create(f"group-{group}")
        for queue_id in range(QUEUES):
            node.broker.offsets.commit("orders", f"group-{group}", queue_id, group)
    await node.broker.tables.wait_until_saved(node.broker.groups)
    async with watched("28, 43, 21 and 201 with 1,000 groups", turns, PERIOD_SECONDS):
        await clients(node, ask_reports)


async def waiting(node: Node, turns: TurnMeter) -> None:
    broker = node.broker
    for name in (TOPIC, *(f"held-{number}" for number in range(PULLING_CLIENTS))):
        queues = QUEUES if name == TOPIC else HELD_PULLS // PULLING_CLIENTS
        broker.topics.update(TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues))
    broker.config.transaction_check_interval = 15_000
    host, _, port = node.bound_address.rpartition(":")
    process = multiprocessing.get_context("spawn").Process(target=fill_and_hold, args=((host, int(port)),))
    process.start()
    async with watched("storing what waits", turns, PERIOD_SECONDS):
        await until(lambda: len(broker.pulling.waiters) >= HELD_PULLS - 1000)
    freeze_start_objects()
    what = f"{TIMED_MESSAGES:,} timed and {HALF_MESSAGES:,} half messages, {HELD_PULLS:,} held pulls"
    async with watched(what, turns, PERIOD_SECONDS):
        await asyncio.sleep(60)
    process.terminate()
    process.join()


ROWS: dict[str, Callable[[Node, TurnMeter], Awaitable[None]]] = {
    each.__name__: each for each in (pops, expiry, reports, storm, topics, offsets, waiting)
}


async def measure(only: Iterator[str], parent: str | None, turns: TurnMeter) -> None:
    for name in only:
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            async with frame.started_node(Path(folder)) as node:
                freeze_start_objects()
                await ROWS[name](node, turns)


def main() -> None:
    arguments = frame.parsed(__doc__, only=",".join(ROWS), folder=None)
    raise_file_limit()
    grow_descriptor_table()
    turns = TurnMeter()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(turns)) as runner:
        runner.run(measure(iter(arguments.only.split(",")), arguments.folder, turns))


if __name__ == "__main__":
    main()
