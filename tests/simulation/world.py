"""One run: builds the machines, lets the clients work, makes the faults happen, and checks the books.

    outcome = Run(plan_of(17), Path()).run()

The folder is the working directory: paths have the same text, and the same hash, in each run.

The name server, the brokers and the clients are the product's own; what they ask the system for is answered by
`patches.py`.
"""

import asyncio
import gc
import hashlib
import logging
import shutil
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NamedTuple

from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.errors import StartError
from pocketmq.broker.name_server.name_server import NameServer
from pocketmq.broker.network.dispatch import NAME_SERVER
from pocketmq.broker.network.server import Server
from pocketmq.broker.network.server_context import Limits
from pocketmq.broker.node import Node
from pocketmq.grpc_endpoint.endpoint import Endpoint
from pocketmq.protocol.languages import V5_5_0
from pocketmq.store import MessageStore, StoreError
from pocketmq.testing.server.settings import broker_config

from simulation.books import Books, InvariantError, Missing, Place
from simulation.clients import Clients
from simulation.faults import RESTART_SECONDS, Faults
from simulation.loop import SimulatedLoop, StuckError
from simulation.machines import Life, Machine
from simulation.network import NEUTRAL, Network
from simulation.patches import World, forget_instances
from simulation.plan import Plan
from simulation.settings import prepare_groups, settings_of
from simulation.watching import Logs, damage_of, max_offsets, position_in_log, position_of_recall, records_of

NAME_SERVER_PORT, GRPC_PORT = 9876, 8081
OTHER_BOOT = "1 another-boot 1"
SETTLES_WITHIN_SECONDS = 900.0
TRACE_LINES_KEPT = 400


class Outcome(NamedTuple):
    """`failure` is empty if every invariant held."""

    failure: str
    trace_hash: str
    virtual_seconds: float
    counts: dict[str, int]
    last_lines: list[str]
    longest_turn: float
    """Seconds of processor time that one callback of a machine took."""
    long_turns: dict[int, str]
    """Those beyond the limit, by their number, which is the same in each run of the plan."""


class Run:
    """The world of one plan."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self.loop = loop = SimulatedLoop()
        self._hash, self._lines = hashlib.blake2b(digest_size=16), []  # type: ignore[var-annotated]
        names = ("n0", *plan.brokers, *plan.producers, *plan.consumers, *plan.name_servers[1:])
        self.machines = {
            name: Machine(
                name,
                f"10.0.0.{number}",
                loop,
                plan.random(name),
                folder / name if name in plan.brokers else None,
            )
            for number, name in enumerate(names, 1)
        }
        self.network = loop.network = Network(loop, plan.random("network"), self.machines, self.trace)
        World.loop, World.network, World.machines = loop, self.network, self.machines
        World.trace, World.random = self.trace, plan.random("product")
        self.books = Books(plan, lambda: loop.now, self.trace)
        ips = {name: machine.ip for name, machine in self.machines.items()}
        self._name_servers = ";".join(f"{ips[name]}:{NAME_SERVER_PORT}" for name in plan.name_servers)
        grpc_servers = [(ips[name], GRPC_PORT) for name in plan.masters]
        slaves = [(ips[name], GRPC_PORT) for name in plan.grpc_slaves]
        self.clients = Clients(plan, self.machines, self.books, self._name_servers, grpc_servers, slaves)
        self.books.flushed, self.books.position_of = self._flushed, self._position_of
        self.books.recall_position_of = self._recall_position_of
        World.books, World.opened, World.folder = self.books, self.opened, folder
        self.nodes: dict[str, Node] = {}
        self.endpoints: dict[str, Endpoint] = {}
        self._ended_at: dict[str, dict[Place, int]] = {}
        """Max offsets of the queues of masters at the end of their last life."""
        self._offsets: dict[str, dict[Place, int]] = {}
        """Those of masters whose power was lost since."""
        self._down: dict[str, float] = {}
        """Until when a machine stays down."""
        self.unsafe: set[str] = set()
        """Brokers whose disk was refused or delayed since their last start."""
        self._is_torn = False
        """Whether records of the slave may have properties that were not forced, which no CRC protects."""
        self.is_calm = False
        self.trace_all = False
        self.faults = Faults(self)

    def trace(self, line: str, data: bytes = b"") -> None:
        text = f"{self.loop.now:.6f} {line}"
        self._hash.update(text.encode())
        self._hash.update(data)
        self._lines.append(text)
        if len(self._lines) > 2 * TRACE_LINES_KEPT and not self.trace_all:
            del self._lines[:TRACE_LINES_KEPT]

    def run(self) -> Outcome:
        failure = ""
        asyncio.set_event_loop(self.loop)
        gc.disable()
        logs = Logs()
        logging.getLogger("pocketmq").addHandler(logs)
        try:
            self.loop.run_until_complete(self._live())
            failures = [*self.books.violations, *self.loop.failures, *logs.failures]
            failure = failures[0] if failures else ""
        except (InvariantError, StuckError, StoreError, TimeoutError, RuntimeError) as error:
            failure = f"{type(error).__name__}: {error}"
        finally:
            logging.getLogger("pocketmq").removeHandler(logs)
            self._end()
        counts, turns = dict(self.books.counts), (self.loop.longest_turn, self.loop.long_turns)
        return Outcome(failure, self._hash.hexdigest(), self.loop.now, counts, self._lines, *turns)

    # -- machines

    def start(self, machine: Machine, work: Coroutine[Any, Any, None]) -> Life:
        life = machine.begin()
        self.loop.create_task(work, context=life.context.copy()).add_done_callback(self._ended)
        return life

    def _ended(self, program: asyncio.Task[None]) -> None:
        if not program.cancelled() and program.exception() is not None:
            self.loop.failures.append(f"a program has failed: {program.exception()!r}")

    async def _serve_names(self, name: str) -> None:
        config = NameServerConfig(listen_port=NAME_SERVER_PORT)
        machine = self.machines[name]
        names = NameServer(config, machine.clock, is_5=self.plan.emulate == "5")
        server = Server(NAME_SERVER.name, version=V5_5_0, limits=Limits())
        await server.bind(machine.ip, NAME_SERVER_PORT)
        handlers = NAME_SERVER.of_line(5 if self.plan.emulate == "5" else 4).bind(names)
        await server.serve(handlers, on_close=names.connection_closed)
        names.start(server)

    async def _serve(self, name: str) -> None:
        """The broker of a machine; it is started again as long as it cannot start."""
        machine = self.machines[name]
        assert machine.root is not None
        if "grpc in order" in self.plan.uses:
            prepare_groups(machine)
        settings = settings_of(self.plan, name, machine.ip, self._name_servers)
        config = broker_config(settings, conf=None, store=machine.root, is_temporary=False)
        config.store.memory_size_bytes = 1 << 30
        seed = self.plan.random(f"{name} {self.loop.now}").getrandbits(32)
        node = Node(config, None, host=machine.ip, clock=machine.clock, seed=seed)
        while True:
            try:
                await node.start()
                break
            except (StartError, StoreError) as error:
                self.trace(f"{name} cannot start: {error}")
                if self.is_calm:
                    self.books.violated(f"{name} cannot start: {error}")
                await asyncio.sleep(RESTART_SECONDS)
                node = Node(config, None, host=machine.ip, clock=machine.clock, seed=seed)
        if "grpc" in self.plan.uses and name in (*self.plan.masters, *self.plan.grpc_slaves):
            endpoint = Endpoint(node, port=GRPC_PORT)
            await endpoint.start()
            self.endpoints[name] = endpoint
        self.nodes[name] = node

    def opened(self, store: MessageStore) -> None:
        """A broker has recovered its store, and serves nobody yet."""
        name = next(name for name, one in self.machines.items() if one.root == store.config.root)
        if name not in self.plan.masters:
            return
        self._ended_at.pop(name, None)
        if name in self._offsets:
            self.books.queues_after(self._offsets.pop(name), max_offsets(name, store))
        if name != "b0":
            return
        slave = self.nodes.get("b0-1")
        if self.books.slave_end > store.log_end or (slave and slave.broker.store.log_end > store.log_end):
            self.books.has_diverged = True

    def _start_again(self, name: str) -> None:
        machine = self.machines[name]
        if machine.is_up or self._down.get(name, 0) > self.loop.now:
            return
        self.trace(f"{name} starts")
        if name in self.plan.name_servers:
            self.start(machine, self._serve_names(name))
        elif name in self.plan.brokers:
            self.start(machine, self._serve(name))
        else:
            self.start(machine, self.clients.work_of(name))

    def end_life(
        self, name: str, seconds: float, *, loses_power: bool = False, is_stopped: bool = False
    ) -> None:
        machine = self.machines[name]
        if not machine.is_up:
            return
        life, node = machine.life, self.nodes.pop(name, None)
        assert life is not None
        if node is not None and node._broker is not None:
            self._ended_at[name] = max_offsets(name, node.broker.store)
        machine.end()
        forget_instances(self.loop, machine)
        if not loses_power:
            self.network.process_died(life)
        if node is not None and node._broker is not None:
            node._broker.store._lock.release()
        machine.past += [node, self.endpoints.pop(name, None)]
        if not is_stopped:
            self.books.died(name, was_unsafe=name in self.unsafe)
        self.books.receipts.disturbed(name, seconds)
        if machine.disk is not None:
            self._disk_without(name, loses_power=loses_power)
        self._down[name] = self.loop.now + seconds
        self.loop.call_later(seconds, self._start_again, name, context=NEUTRAL)

    def _disk_without(self, name: str, *, loses_power: bool) -> None:
        """What the disk of a machine holds after the end of its program. The folder gets a new name, so that what is
        left of the program reaches it no more."""
        machine = self.machines[name]
        assert machine.disk is not None
        assert machine.root is not None
        root = machine.root.with_name(f"{name}.{len(machine.past)}")
        if machine.root.exists():
            machine.root.rename(root)
        machine.root = root
        machine.disk.moved(root)
        if loses_power and root.exists():
            if name in self.plan.masters:
                self.books.power_lost(name, was_unsafe=name in self.unsafe)
                self._offsets[name] = self._ended_at.get(name, {}) | self._offsets.get(name, {})
            machine.disk.lose_power()
            self._is_torn = self._is_torn or (name == "b0-1" and not self.plan.has_record_crc)
            if (root / "abort").exists() and len((root / "abort").read_text().split()) == 3:
                (root / "abort").write_text(OTHER_BOOT)
        self.unsafe.discard(name)

    async def stop(self, name: str, seconds: float) -> None:
        """Stop a broker as an administrator does, and start it again."""
        machine, node = self.machines[name], self.nodes.pop(name, None)
        if node is None or machine.life is None:
            return
        life = machine.life
        self._ended_at[name] = max_offsets(name, node.broker.store)
        self.books.receipts.disturbed(name, seconds)
        stopping = self.loop.create_task(self._stop_node(name, node), context=life.context.copy())
        await asyncio.wait([stopping], timeout=60)
        if life.is_alive:
            is_stopped = stopping.done() and name not in self.unsafe and not machine.is_full
            self.end_life(name, seconds, is_stopped=is_stopped)

    async def _stop_node(self, name: str, node: Node) -> None:
        endpoint = self.endpoints.pop(name, None)
        if endpoint is not None:
            await endpoint.stop()
        await node.stop()

    def _make_calm(self) -> None:
        self.is_calm = True
        self.faults.make_calm()
        self._down.clear()
        for name in self.machines:
            self._start_again(name)

    # -- the run

    async def _live(self) -> None:
        for number, name in enumerate(self.machines):
            self.loop.call_later(0.1 * number, self._start_again, name, context=NEUTRAL)
        for event in self.plan.events:
            self.loop.call_at(event.at, self.faults.happen, event, context=NEUTRAL)
        await asyncio.sleep(self.plan.seconds)
        self._make_calm()
        self.clients.is_ending = True
        await self._settled()
        records = self._records()
        self.books.check_stored(records)
        self.clients.check_once()
        self.clients.check_dead_letters(records)
        self._check_copy()
        await self.clients.stop()
        for name in reversed(self.plan.brokers):
            node = self.nodes[name]
            life = self.machines[name].life
            assert life is not None
            await self.loop.create_task(self._stop_node(name, node), context=life.context.copy())
            if name == "b0-1" and self.books.has_diverged:
                continue
            damage = damage_of(self.machines[name].root or Path(), has_lost=bool(self.books.regressed))
            if damage:
                raise InvariantError(f"{name} is damaged: {damage[:3]}")

    async def _settled(self) -> None:
        """Wait until everything is consumed. All records are read again only once what was missing has come."""
        deadline = self.loop.now + SETTLES_WITHIN_SECONDS
        missing: list[Missing] = []
        problem = "the brokers"
        while problem:
            await asyncio.sleep(1)
            for failure in (*self.books.violations, *self.loop.failures):
                raise InvariantError(failure)
            if all(name in self.nodes for name in self.plan.brokers):
                missing = [one for one in missing if self.books.is_missing(one)]
                missing = missing or self.clients.unfinished(self._records())
                problem = str(missing[:3]) if missing else self._uncopied()
            if problem and self.loop.now > deadline:
                raise InvariantError(
                    f"not consumed {SETTLES_WITHIN_SECONDS:.0f} s after the last fault: {problem}"
                )

    def _flushed(self, name: str) -> int:
        """Up to where the log of a broker is on disk; without end if it is down."""
        node = self.nodes.get(name)
        return 1 << 62 if node is None else node.broker.store.flushed_position

    def _position_of(self, place: Place, offset: int, key: str) -> int | None:
        node = self.nodes.get(place[0])
        return None if node is None else position_in_log(node.broker.store, place, offset, key)

    def _recall_position_of(self, broker_name: str, message_id: str) -> int | None:
        """A broker whose disk is slow confirms a recall after a time, as officially."""
        node = self.nodes.get(broker_name)
        if node is None or broker_name in self.unsafe or self.plan.flush == "ASYNC_FLUSH":
            return 0
        return position_of_recall(node.broker.store, message_id)

    def _uncopied(self) -> str:
        if not self.plan.has_slave or self.books.has_diverged:
            return ""
        master, slave = (self.nodes[name].broker.store.log_end for name in ("b0", "b0-1"))
        return "" if slave >= master else f"the slave's log ends at {slave}, the master's at {master}"

    def _check_copy(self) -> None:
        """The slave's log is the master's, byte for byte."""
        if not self.plan.has_slave or self.books.has_diverged or self._is_torn:
            return
        master, slave = (self.nodes[name].broker.store for name in ("b0", "b0-1"))
        for file in slave.log.files:
            other = master.log.files.file_at(file.base)
            if other is not None and file.view[: file.written] != other.view[: file.written]:
                raise InvariantError(f"{file.path.name} of the slave differs from the master's")

    def _records(self) -> dict[Place, list[Any]]:
        """What the masters' queues hold."""
        found: dict[Place, list[Any]] = {}
        for name in self.plan.masters:
            found |= records_of(name, self.nodes[name].broker.store)
        return found

    def _end(self) -> None:
        """Nothing of this run may run again."""
        sys.unraisablehook, hook = lambda _: None, sys.unraisablehook
        for machine in self.machines.values():
            machine.end()
            for life in (*machine.past, machine.life):
                if isinstance(life, Life):
                    for task in life.tasks:
                        task._log_destroy_pending = False
                    life.tasks.clear()
        for name, node in self.nodes.items():
            if node._broker is not None:
                node._broker.store._lock.release()
            self.machines[name].past.append(node)
        shutil.rmtree(self.folder, ignore_errors=True)
        logging.disable(logging.CRITICAL)
        self.loop._ready.clear()  # type: ignore[attr-defined]
        self.loop._scheduled.clear()  # type: ignore[attr-defined]
        self.loop.close()
        asyncio.set_event_loop(None)
        self.nodes.clear()
        self.endpoints.clear()
        self.machines.clear()
        self.network.wires.clear()
        gc.enable()
        gc.collect()
        logging.disable(logging.NOTSET)
        sys.unraisablehook = hook
