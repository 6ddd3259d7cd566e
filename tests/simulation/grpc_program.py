"""What programs of gRPC clients have in common: channels to brokers, telemetry streams, heartbeats.

A program goes on where a call fails. It has a telemetry stream to every broker that it uses, and opens it again after a
loss. `grpc_producer.py` and `grpc_consumer.py` are the two kinds.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from random import Random
from typing import Any, Final

from pocketmq.grpc_endpoint import messages as m

from simulation.books import Books
from simulation.grpc_channel import CallError, Channel
from simulation.machines import Life, Machine
from simulation.plan import Plan

CALL_SECONDS: Final = 3.0
PAUSE_SECONDS: Final = 1.0
HEARTBEAT_SECONDS: Final = 10.0
WINDOWS: Final = (1_000, 65_535, 1 << 30)

ServerAt = tuple[str, int]


class GrpcProgram:
    """One client. `run` ends when its machine's programs are to stop."""

    def __init__(
        self, machine: Machine, chance: Random, plan: Plan, books: Books, servers: list[ServerAt], role: str
    ) -> None:
        """`role` distinguishes clients of one machine. `servers` are where a client begins."""
        assert machine.life is not None
        self.machine, self.chance, self.plan, self.books = machine, chance, plan, books
        self.life: Life = machine.life
        self._servers = servers
        self._metadata = {
            "x-mq-client-id": f"{machine.name}@{len(machine.past)}@{role}",
            "x-mq-language": "PYTHON",
            "x-mq-client-version": "5.1.0",
            "x-mq-protocol": "v2",
        }
        self._channels: dict[ServerAt, Channel] = {}
        self._connecting: dict[ServerAt, asyncio.Lock] = {}
        self._used: dict[ServerAt, None] = {}
        """Brokers with a telemetry stream."""
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._is_ending = False

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    @property
    def settings(self) -> m.Settings:
        raise NotImplementedError

    def termination(self) -> m.NotifyClientTerminationRequest:
        return m.NotifyClientTerminationRequest()

    def heartbeat(self) -> m.HeartbeatRequest:
        raise NotImplementedError

    def begin(self) -> None:
        """Start what the program does by itself."""

    def on_command(self, server: ServerAt, command: m.TelemetryCommand) -> None:
        """A question of a broker."""

    async def run(self, stopped: asyncio.Event) -> None:
        self.spawn(self._send_heartbeats())
        self.begin()
        await stopped.wait()
        self._is_ending = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for server in self._used:
            with contextlib.suppress(CallError):
                await self.ask(server, self.termination())
        for channel in self._channels.values():
            channel.close()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            context = {"message": "a gRPC client has failed", "exception": task.exception()}
            asyncio.get_running_loop().call_exception_handler(context)

    # -- servers

    async def ask(self, server: ServerAt, request: Any) -> Any:
        """Raises `CallError`."""
        channel = await self.channel(server)
        return await channel.ask(request, CALL_SECONDS)

    async def ask_any(self, request: Any) -> Any:
        """What the first answers that does. Raises `CallError`."""
        servers = self.chance.sample(self._servers, len(self._servers))
        for server in servers[:-1]:
            try:
                return await self.ask(server, request)
            except CallError:
                continue
        return await self.ask(servers[-1], request)

    async def channel(self, server: ServerAt) -> Channel:
        """Raises `CallError`."""
        async with self._connecting.setdefault(server, asyncio.Lock()):
            found = self._channels.get(server)
            if found is None or not found.is_open:
                window = self.chance.choice(WINDOWS)
                found = await Channel.connected(*server, self._metadata, window)
                self._channels[server] = found
        return found

    def use(self, server: ServerAt) -> None:
        """Have a telemetry stream to it from now on."""
        if server not in self._used and not self._is_ending:
            self._used[server] = None
            self.spawn(self._stay_known(server))

    async def _stay_known(self, server: ServerAt) -> None:
        while True:
            try:
                call = (await self.channel(server)).open("Telemetry")
                call.send(m.TelemetryCommand(settings=self.settings))
                while (command := await call.next()) is not None:
                    self.on_command(server, command)
            except CallError:
                self.books.counts["broken streams"] += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def _send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            for server in list(self._used):
                try:
                    await self.ask(server, self.heartbeat())
                except CallError:
                    self.books.counts["failed heartbeats"] += 1


def server_of(queue: m.MessageQueue) -> ServerAt:
    (address,) = queue.broker.endpoints.addresses[:]
    return address.host, address.port
