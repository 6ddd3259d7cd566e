"""What the gRPC port costs while nothing happens: `python -m bench.grpc_waiting [CLIENTS]`.

Start time and memory of `pocketmq serve` without and with the port; then memory and idle processor time with CLIENTS
(1,000) connections, each with an open telemetry stream, and then with a waiting receive each.
"""

import asyncio
import re
import subprocess
import sys
import time

import hpack
from pocketmq.grpc_endpoint import messages as m
from pocketmq.grpc_endpoint.http2 import frames
from pocketmq.grpc_endpoint.messages.proto import Message

from .frame import cpu_seconds, memory_bytes, print_load_average

IDLE_SECONDS = 8.0
STARTS = 3
TOPIC, GROUP = m.Resource(name="Waiting"), m.Resource(name="waiting")
SERVICE = "/apache.rocketmq.v2.MessagingService/"


def memory_mib(process: int) -> float:
    return memory_bytes(process, "VmRSS") / (1 << 20)


def started(*options: str) -> tuple[subprocess.Popen[str], str, float]:
    """A server, what it printed, and the seconds until it was ready."""
    ports = ("--port", "0", "--namesrv-port", "0")
    command = [sys.executable, "-m", "pocketmq.cli", "serve", "--ephemeral", *ports]
    begin = time.perf_counter()
    server = subprocess.Popen([*command, "--log-level", "error", *options], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    printed = server.stdout.readline()
    seconds = time.perf_counter() - begin
    if options:
        printed += server.stdout.readline()
    return server, printed, seconds


def stop(server: subprocess.Popen[str]) -> None:
    server.terminate()
    server.wait(15)
    if server.stdout is not None:
        server.stdout.close()


class Client:
    """One connection, by hand: a complete client would be what is measured."""

    def __init__(self, number: int) -> None:
        self._encoder = hpack.Encoder()
        self._id = f"bench@{number}@0@a"
        self._stream = 1

    async def connect(self, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        self._writer.write(frames.PREFACE + frames.settings({}))

    def open(self, name: str, request: Message, *, end: bool) -> None:
        headers = [(":method", "POST"), (":scheme", "http"), (":path", SERVICE + name), (":authority", "x")]
        headers += [("content-type", "application/grpc"), ("x-mq-client-id", self._id)]
        headers += [("x-mq-language", "JAVA")]
        data = request.SerializeToString()
        block = self._encoder.encode(headers)
        self._writer.write(frames.frame(frames.HEADERS, frames.END_HEADERS, self._stream, block))
        prefixed = b"\0" + len(data).to_bytes(4) + data
        self._writer.write(frames.frame(frames.DATA, int(end), self._stream, prefixed))
        self._stream += 2

    async def read(self) -> None:
        """Read the first answer."""
        await self._reader.read(65536)


def settings() -> m.TelemetryCommand:
    entry = m.SubscriptionEntry(
        topic=TOPIC, expression=m.FilterExpression(type=m.FilterType.TAG, expression="*")
    )
    subscription = m.Subscription(group=GROUP, subscriptions=[entry])
    return m.TelemetryCommand(
        settings=m.Settings(client_type=m.ClientType.PUSH_CONSUMER, subscription=subscription)
    )


def receive() -> m.ReceiveMessageRequest:
    return m.ReceiveMessageRequest(
        group=GROUP,
        message_queue=m.MessageQueue(topic=TOPIC, id=-1),
        batch_size=32,
        auto_renew=True,
        long_polling_timeout=m.duration_of(20_000),
    )


async def wait(process: int, port: int, count: int) -> None:
    before = memory_mib(process)
    clients = [Client(number) for number in range(count)]
    for client in clients:
        await client.connect(port)
        client.open("Telemetry", settings(), end=False)
        await client.read()
    await report(process, before, f"{count} telemetry streams", count)
    before = memory_mib(process)
    for client in clients:
        client.open("ReceiveMessage", receive(), end=True)
    await asyncio.sleep(2)
    await report(process, before, f"{count} waiting receives", count)


async def report(process: int, before: float, what: str, count: int) -> None:
    await asyncio.sleep(1)
    used = cpu_seconds(process)
    await asyncio.sleep(IDLE_SECONDS)
    used = cpu_seconds(process) - used
    grown = memory_mib(process) - before
    print(
        f"{what}: {grown:.1f} MiB more ({grown * 1024 / count:.1f} KiB each), "
        f"{100 * used / IDLE_SECONDS:.1f} % of a core while nothing happens",
        flush=True,
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print_load_average()
    found: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
    for _ in range(STARTS):
        for name, options in (("without", ()), ("with", ("--grpc-port", "0"))):
            server, _, seconds = started(*options)
            found[name].append((seconds, memory_mib(server.pid)))
            stop(server)
    for name, rows in found.items():
        seconds, memory = min(row[0] for row in rows), min(row[1] for row in rows)
        print(f"{name} the port: ready after {1000 * seconds:.0f} ms, {memory:.1f} MiB", flush=True)
    server, printed, _ = started("--grpc-port", "0", "--topic", "Waiting")
    match = re.search(r"GRPC_ENDPOINT=.*:(\d+)", printed)
    assert match is not None, printed
    try:
        asyncio.run(wait(server.pid, int(match[1]), count))
    finally:
        stop(server)


if __name__ == "__main__":
    main()
