"""The rows of `scale.py` that need server processes: ours beside official brokers, memory, and two brokers at once.

Every side gets the same table of topics or the same log, and the same requests over TCP. Figures are processor time of
the whole broker process, all threads, less what it uses when idle: the official broker works in many threads. A start
is measured until the broker is in the name server's routes.
"""

import multiprocessing
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from pocketmq.protocol.bodies.routes import TopicRouteData
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter
from pocketmq.testing import EmbeddedServer

from conformance.official.servers import OfficialServer
from conformance.servers.our_server import OurServer
from conformance.servers.server import Server

from .frame import memory_bytes, served
from .java_sides import OFFICIAL, OURS, SETTINGS, new_server
from .scale_bench import TOPIC, Figures, create, frame_of, fresh, pull, send
from .start import thread_ms

Rows = Iterator[tuple[str, int, dict[str, float]]]
"""Side, size, figures."""

AT_ONCE: Final = 16
CREATED: Final = 20
SENT: Final = 4000
WARM_UP: Final = 5
"""Rounds before: the Java compiler is at work meanwhile."""
SETTLE_SECONDS: Final = 0.2
PULLED: Final = 32
QUEUES: Final = 4
SYSTEM_BUSY: Final = 2


def store_with(folder: Path, *, topics: int = 0, groups: int = 0) -> Path:
    """A store without messages that has these tables, as a broker leaves it."""
    server = EmbeddedServer(store=folder)
    with server:

        def fill() -> None:
            names = [TOPIC, *(f"topic-{number}" for number in range(topics))]
            for name in names:
                config = TopicConfig(topic_name=name, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
                server.broker.topics.update(config)
            for number in range(groups):
                server.broker.groups.find_or_create(f"group-{number}")

        server.call(fill)
    for path in folder.iterdir():
        if path.name != "config":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return folder


def process_id(server: Server) -> int:
    if isinstance(server, OurServer):
        assert server.process is not None
        return server.process.process.pid
    return cast(OfficialServer, server).brokers["broker"].process.pid


@contextmanager
def made(side: str, write: Callable[[Path], object]) -> Iterator[Server]:
    """A server of that side, not started, with a store that `write` makes."""
    with tempfile.TemporaryDirectory(prefix="pocketmq-scale-") as home:
        server = new_server(side, Path(home), SETTINGS)
        write(server.store)
        try:
            yield server
        finally:
            server.kill()
            server.close()


def start_ms(server: Server) -> float:
    """Start it: milliseconds of processor time until clients can connect."""
    server.start()
    return thread_ms(process_id(server))


def spent_us(server: Server, work: Callable[[], None], count: int) -> float:
    """Microseconds of the process for each of `count` pieces of work, and what they leave to be done."""
    begun = thread_ms(process_id(server))
    work()
    time.sleep(SETTLE_SECONDS)
    return (thread_ms(process_id(server)) - begun) * 1000 / count


def exchange(peer: socket.socket, frames: Sequence[bytes]) -> int:
    """The bytes of the answers to requests that are sent together; each must be a success. What a busy broker refuses
    is sent again."""
    size = 0
    while frames:
        peer.sendall(b"".join(frames))
        cutter, answers = FrameCutter(), list[Command]()
        while len(answers) < len(frames):
            answers += cutter.feed(peer.recv(1 << 18))
        refused = next((one for one in answers if one.code not in (0, SYSTEM_BUSY)), None)
        assert refused is None, refused
        size += sum(len(one.body or b"") for one in answers)
        frames = frames[: sum(one.code == SYSTEM_BUSY for one in answers)]
    return size


def beside_topics(sides: Sequence[str], sizes: Sequence[int]) -> Rows:
    for size in sizes:
        for side in sides:
            with made(side, partial(store_with, topics=size)) as server:
                figures = {"a start, by topics, ms": start_ms(server)}
                if side == OURS:
                    figures["memory, by topics, MiB"] = memory_bytes(process_id(server)) / (1 << 20)
                with server.connect(timeout=60) as peer:
                    send_some, create_some = partial(_send, peer), partial(_create, peer)
                    for _ in range(WARM_UP):
                        send_some()
                    figures["a send, the whole process"] = spent_us(server, send_some, SENT)
                    create_some()
                    figures["creating a topic, the whole process"] = spent_us(server, create_some, CREATED)
            yield side, size, figures


def _send(peer: socket.socket) -> None:
    for _ in range(SENT // AT_ONCE):
        exchange(peer, [send() for _ in range(AT_ONCE)])


def _create(peer: socket.socket) -> None:
    for _ in range(CREATED):
        exchange(peer, [create(f"new-{fresh()}")])


def restarts(sides: Sequence[str], sizes: Sequence[int]) -> Rows:
    """By messages in the log. The first start builds the index; the clean one is for ours only: an official broker
    takes up to 17 s to stop."""
    from .large_store import write_store

    for size in sizes:

        def write(store: Path, size: int = size) -> None:
            write_store(store_with(store), size)

        for side in sides:
            with made(side, write) as server:
                start_ms(server)
                server.kill()
                figures = {"a start after a kill, by messages, ms": start_ms(server)}
                if side == OURS:
                    server.stop()
                    figures["a start after a clean stop, by messages, ms"] = start_ms(server)
            yield side, size, figures


def group_memory(sizes: Sequence[int]) -> Figures:
    for size in sizes:
        with made(OURS, partial(store_with, groups=size)) as server:
            server.start()
            found = memory_bytes(process_id(server)) / (1 << 20)
        yield size, {"memory, by groups, MiB": found}


# -- two processes


def _load(address: str, seconds: float, pulls: bool, counted: Any) -> None:
    """Send or pull as fast as one Python process can; put how many messages into `counted`."""
    host, _, port = address.partition(":")
    frames = [
        [send() for _ in range(AT_ONCE * 8)],
        [pull(TOPIC, queue, 0, PULLED) for queue in range(QUEUES)],
    ][pulls]
    messages = len(frames) * (PULLED if pulls else 1)
    with socket.create_connection((host, int(port))) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        until, done = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            exchange(peer, frames)
            done += messages
    counted.put(done)


def loaded(
    brokers: Sequence[tuple[str, int]], loaders: int, seconds: float, *, pulls: bool
) -> tuple[float, float]:
    """Messages a second by the wall, and microseconds of the brokers for a message."""
    context = multiprocessing.get_context("spawn")
    counted = context.Queue()
    addresses = [brokers[number % len(brokers)][0] for number in range(loaders)]
    processes = [context.Process(target=_load, args=(one, seconds, pulls, counted)) for one in addresses]
    begun = sum(thread_ms(one) for _, one in brokers)
    for process in processes:
        process.start()
    done = sum(counted.get() for _ in processes)
    for process in processes:
        process.join()
    return done / seconds, (sum(thread_ms(one) for _, one in brokers) - begun) * 1000 / done


def two_processes(seconds: float) -> list[dict[str, float]]:
    """One broker, and two in a cluster: rates and costs of sends and pulls."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        stores = [store_with(Path(folder) / name) for name in ("broker-a", "broker-b")]
        shutil.rmtree(stores[1] / "config")
        with served(stores[0]) as first:
            words = ("--no-namesrv", "--namesrv", first.namesrv, "--set", "brokerName=broker-b")
            with served(stores[1], *words, ports=("--port", "0")) as second:
                addresses = broker_addresses(first.namesrv)
                brokers = [(addresses["broker-a"], first.pid), (addresses["broker-b"], second.pid)]
                for address, _ in brokers:
                    with connected(address) as peer:
                        exchange(peer, [create(TOPIC)])
                        for queue_id in range(QUEUES):
                            exchange(peer, [send(queue_id=queue_id) for _ in range(PULLED)])
                for count, loaders in ((1, 1), (1, 2), (2, 2)):
                    sends = loaded(brokers[:count], loaders, seconds, pulls=False)
                    pulled = loaded(brokers[:count], loaders, seconds, pulls=True)
                    found.append(
                        {
                            "brokers": count,
                            "loaders": loaders,
                            "sends_per_second": sends[0],
                            "send_us": sends[1],
                            "pulled_per_second": pulled[0],
                            "pulled_us": pulled[1],
                        }
                    )
    return found


def connected(address: str) -> socket.socket:
    host, _, port = address.partition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def broker_addresses(namesrv: str) -> dict[str, str]:
    """The brokers behind a name server, by name."""
    request = GetRouteInfoByTopic(topic="BenchmarkTest")
    with connected(namesrv) as peer:
        while True:
            peer.sendall(frame_of(request))
            cutter, answers = FrameCutter(), []
            while not answers:
                answers = cutter.feed(peer.recv(1 << 16))
            route = TopicRouteData.decode(bytes(answers[0].body or b""))
            found = {one.broker_name: (one.broker_addrs or {})[0] for one in route.broker_datas}
            if len(found) == 2:
                return found
            time.sleep(0.1)


SIDES: Final = (OURS, *OFFICIAL.values())
