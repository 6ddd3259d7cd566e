"""Killed servers, and clocks that jump: no acknowledged message is lost, order is kept, traffic continues.

The broker is a process of its own here, killed as in a crash and started again on the same ports.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import ClientError, MessageExt, NotReachable, Producer, SendFailed
from pocketmq.testing.faults.tcp_proxy import TcpProxy

from client_waits import Seen, consuming, send
from ports import fixed_port
from waiting import until

LONG = 30.0


class Mortal:
    """A server process that can be killed and restarted with the same store and ports."""

    def __init__(self, folder: Path) -> None:
        ports = fixed_port(), fixed_port()
        self.namesrv_addr = f"127.0.0.1:{ports[1]}"
        words = ["--port", str(ports[0]), "--namesrv-port", str(ports[1]), "--log-level", "error"]
        serve = (sys.executable, "-m", "pocketmq.cli", "serve", "--store", str(folder / "store"))
        self._command = (*serve, *words)
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        process = await asyncio.create_subprocess_exec(*self._command, stdout=asyncio.subprocess.PIPE)
        self._process = process
        assert process.stdout is not None
        async with asyncio.timeout(LONG):
            assert (await process.stdout.readline()).startswith(b"NAMESRV_ADDR=")

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@pytest.fixture
async def mortal(tmp_path: Path) -> AsyncIterator[Mortal]:
    server = Mortal(tmp_path)
    await server.start()
    yield server
    await server.kill()


class Load:
    """Tasks that send numbered messages, each to its own queue; a failed one is sent again until it is acknowledged."""

    def __init__(self, producer: Producer, tasks: int) -> None:
        self._producer = producer
        self.acknowledged: list[bytes] = []
        self._stop = False
        self._tasks = [asyncio.create_task(self._run(number)) for number in range(tasks)]

    async def _run(self, number: int) -> None:
        count = 0
        while not self._stop:
            body = b"%d:%06d" % (number, count)
            try:
                await self._producer.send("T", body, queue_id=number, timeout_ms=1000)
            except ClientError:
                await asyncio.sleep(0.02)
                continue
            self.acknowledged.append(body)
            count += 1
            await asyncio.sleep(0.002)

    async def finish(self) -> None:
        self._stop = True
        await asyncio.gather(*self._tasks)


@pytest.mark.parametrize("kills", [1, pytest.param(12, marks=[pytest.mark.soak, pytest.mark.timeout(300)])])
async def test_a_broker_killed_in_mid_traffic_loses_nothing_and_keeps_order(
    mortal: Mortal, kills: int
) -> None:
    anyhow, in_order = Seen(), Seen()
    reconnected: list[str] = []
    await send(mortal.namesrv_addr, "T", 1, queue_id=3)
    options: dict[str, Any] = {
        "pull_time_delay_mills_when_exception": 50,
        "persist_consumer_offset_interval": 200,
        "on_reconnect": reconnected.append,
    }
    async with (
        Producer("p", namesrv_addr=mortal.namesrv_addr) as producer,
        consuming(mortal.namesrv_addr, anyhow, **options),
        consuming(mortal.namesrv_addr, in_order, group="o", orderly=True, **options),
    ):
        await until(lambda: anyhow.messages and in_order.messages, LONG)
        load = Load(producer, 3)
        for _ in range(kills):
            before = len(load.acknowledged)
            await until(lambda before=before: len(load.acknowledged) > before + 60, LONG)
            await mortal.kill()
            await asyncio.sleep(0.1)
            await mortal.start()
        before = len(load.acknowledged)
        await until(lambda: len(load.acknowledged) > before + 60, LONG)
        await load.finish()
        wanted = set(load.acknowledged)
        await until(lambda: wanted <= set(anyhow.bodies), LONG)
        await until(lambda: wanted <= set(in_order.bodies), LONG)
    assert reconnected
    for number in range(3):
        check_order([message for message in in_order.messages if message.queue_id == number])


def check_order(messages: list[MessageExt]) -> None:
    """Offsets may be delivered again, but none is skipped and each has one body; so with the numbers in the bodies."""
    highest = -1
    bodies: dict[int, bytes] = {}
    first_seen: list[bytes] = []
    for message in messages:
        assert message.queue_offset <= highest + 1, "a message was skipped"
        highest = max(highest, message.queue_offset)
        assert bodies.setdefault(message.queue_offset, message.body) == message.body
        if message.body not in first_seen[-50:]:
            first_seen.append(message.body)
    assert first_seen == sorted(first_seen)


async def test_without_name_servers_traffic_continues(node: Node) -> None:
    """Three route refreshes of 30 s pass in 0.3 s here: a minute and a half without an answer."""
    seen = Seen()
    await send(node.namesrv_address, "T", 4)
    options: dict[str, Any] = {"poll_name_server_interval": 100, "heartbeat_broker_interval": 100}
    async with (
        TcpProxy(node.namesrv_address, port=fixed_port()) as name_server,
        Producer("p", namesrv_addr=name_server.address, **options) as producer,
        consuming(name_server.address, seen, **options) as consumer,
    ):
        await producer.send("T", b"before")
        await until(lambda: len(seen.messages) == 5, LONG)
        await name_server.stop()
        refused = producer._running.routes.name_servers
        for number in range(30):
            await producer.send("T", b"during %d" % number)
            await asyncio.sleep(0.01)
        await until(lambda: len(seen.messages) == 35, LONG)
        with pytest.raises(SendFailed) as failed:
            await producer.send("Unknown", b"x", timeout_ms=300)
        assert isinstance(failed.value.__cause__, NotReachable)
        assert refused.servers == [name_server.address]
        assert len(consumer.assignment()) == 4
        await name_server.start()
        await producer.send("Unknown", b"x", timeout_ms=30_000)
        await producer.send("T", b"after")
        await until(lambda: b"after" in seen.bodies, LONG)


@pytest.mark.parametrize("hours", [-2, 2])
async def test_a_clock_that_jumps_disturbs_nothing(
    mortal: Mortal, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, ordered = Seen(), Seen()
    options = {"poll_name_server_interval": 100}
    await send(mortal.namesrv_addr, "T", 4)
    async with (
        Producer("p", namesrv_addr=mortal.namesrv_addr, send_latency_fault_enable=True) as producer,
        consuming(mortal.namesrv_addr, seen, **options) as consumer,
        consuming(mortal.namesrv_addr, ordered, group="o", orderly=True, **options) as in_order,
    ):
        await until(lambda: len(seen.messages) == len(ordered.messages) == 4, LONG)
        true_ns, true_s = time.time_ns, time.time
        monkeypatch.setattr(time, "time_ns", lambda: true_ns() + hours * 3_600_000_000_000)
        monkeypatch.setattr(time, "time", lambda: true_s() + hours * 3600)
        results = [await producer.send("T", b"%d" % number) for number in range(20)]
        results += await asyncio.gather(*(producer.send_nowait("T", b"f") for _ in range(20)))
        assert len({result.message_id for result in results}) == 40
        for one in (consumer, in_order):
            one.subscribe("Later")  # the brokers get it as a newer version, although the clock is earlier
            one._running.rebalance_now()
        await producer.send("Later", b"later")
        for listener in (seen, ordered):
            await until(lambda listener=listener: len(listener.messages) == 45, LONG)
        for state in in_order._queues.table.values():
            assert not state.is_lock_expired
        monkeypatch.undo()
        await producer.send("T", b"the clock is right again")
        await until(lambda: len(seen.messages) == len(ordered.messages) == 46, LONG)
