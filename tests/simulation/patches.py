"""What the product asks the system for, answered by the simulation: time, threads, sockets, disks, random numbers.

`install` changes modules of the product for good: it runs in a process of its own (`run.py`). Each answer belongs to
the machine whose code asks.
"""

import errno
import importlib
import itertools
import os
import pkgutil
import queue
import random
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

from pocketmq.client.instance.instance import ClientInstance
from pocketmq.store.files import disk, json_file
from pocketmq.store.retention import SystemDisk
from pocketmq.store.timer import timer_store, timer_wheel

from simulation.loop import SimulatedLoop
from simulation.machines import LIFE, START_MS, Machine, SimulatedThread
from simulation.network import ListeningSocket

PACKAGES = ("protocol", "core", "store", "broker", "client", "grpc_endpoint")
PROCESS_ID = 4242
WINDOW_SLOTS = 600
"""A timer wheel of some minutes in place of a week: its file is copied each time it is forced."""


class World:
    """What the answers are made of; one for each run."""

    loop: SimulatedLoop
    network: Any = None
    books: Any = None
    opened: Any = None
    folder: Path
    """Of the files of clients; each has one."""
    random = random.Random(0)
    machines: dict[str, Machine]
    trace: Callable[[str, bytes], None]


class _Module:
    """A module with some names replaced."""

    def __init__(self, real: ModuleType, **names: Any) -> None:
        self._real = real
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


# -- time

_ticks = itertools.count()


def _wall_ms() -> int:
    life = LIFE.get()
    return START_MS + int(World.loop.now * 1000) if life is None else life.machine.clock.now_ms()


def _sleep(seconds: float) -> None:
    if SimulatedThread.current is not None:
        SimulatedThread.current.pause(seconds)


def _time_module() -> _Module:
    return _Module(
        time,
        time=lambda: _wall_ms() / 1000,
        time_ns=lambda: _wall_ms() * 1_000_000,
        clock_gettime_ns=lambda _: START_MS * 1_000_000 + int(World.loop.now * 1e9),
        monotonic=lambda: World.loop.now,
        monotonic_ns=lambda: int(World.loop.now * 1e9),
        perf_counter=lambda: World.loop.now,
        perf_counter_ns=lambda: int(World.loop.now * 1e9) + next(_ticks),
        sleep=_sleep,
    )


# -- threads


class _Condition:
    """Of one thread that waits."""

    def __init__(self) -> None:
        self._waiting: SimulatedThread | None = None

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...

    def wait(self, timeout: float | None = None) -> None:
        self._waiting = SimulatedThread.current
        assert self._waiting is not None
        self._waiting.pause(timeout)
        self._waiting = None

    def notify(self) -> None:
        if self._waiting is not None:
            self._waiting.wake()


def _thread(target: Callable[[], None], name: str = "", daemon: bool = True) -> SimulatedThread:
    return SimulatedThread(World.loop, target)


class _Executor:
    """One thread, which ends when it has nothing to do."""

    def __init__(self, threads: int = 1, thread_name_prefix: str = "") -> None:
        self._work: list[tuple[Future[Any], Callable[[], Any]]] = []
        self._thread: SimulatedThread | None = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        done: Future[Any] = Future()
        self._work.append((done, lambda: function(*arguments)))
        if self._thread is None:
            self._thread = SimulatedThread(World.loop, self._run)
            self._thread.start()
        return done

    def _run(self) -> None:
        while self._work:
            done, work = self._work.pop(0)
            try:
                done.set_result(work())
            except Exception as error:
                done.set_exception(error)
        self._thread = None

    def shutdown(self, wait: bool = True) -> None:
        if self._thread is not None:
            self._thread.join()


class _Answers(queue.SimpleQueue[Any]):
    """Filled by another thread of the machine."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        life = LIFE.get()
        assert life is not None
        while self.empty():
            thread = SimulatedThread.current
            if thread is not None:
                thread.needs_others = True
                thread.pause(0.0001)
                thread.needs_others = False
            else:
                for thread in list(life.threads):
                    thread.step()
        return super().get()


# -- disks


def _machine_of(path: Path) -> Machine | None:
    for machine in World.machines.values():
        if machine.root is not None and path.is_relative_to(machine.root):
            return machine
    return None


def _path_of(descriptor: int) -> Path:
    """As the product names it: in the folder of the run, which is the working directory."""
    return Path(os.readlink(f"/proc/self/fd/{descriptor}").removeprefix(f"{os.getcwd()}/"))


def _sync(descriptor: int) -> None:
    path = _path_of(descriptor)
    machine = _machine_of(path)
    if machine is None or machine.disk is None or not path.is_file():
        return
    if machine.disk.broken:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    content = path.read_bytes()
    if SimulatedThread.current is not None:
        SimulatedThread.current.pause(machine.disk_seconds(path))
    if machine.disk.broken:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    if path.is_file():
        machine.disk.was_forced(path, content)
    World.trace(f"{machine.name} sync {path.name} {len(content)}", b"")
    if machine.on_forced is not None:
        machine.on_forced(path)


def _force_directory(path: Path) -> None:
    machine = _machine_of(path)
    if machine is None or machine.disk is None or not path.is_dir():
        return
    if machine.disk.broken:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    machine.disk.force_directory(path)


def _reserve(descriptor: int, start: int, length: int) -> None:
    _refuse_if_full(_path_of(descriptor))
    os.posix_fallocate(descriptor, start, length)


def _open(path: Any, mode: str = "r", **keywords: Any) -> Any:
    if "w" in mode:
        _refuse_if_full(Path(path))
    return open(path, mode, **keywords)


def _refuse_if_full(path: Path) -> None:
    machine = _machine_of(path)
    if machine is None:
        return
    if machine.is_full:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if machine.disk is not None and machine.disk.broken:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def _pwrite(descriptor: int, data: bytes, position: int) -> int:
    """As a system may: writes a part of the bytes only."""
    _refuse_if_full(_path_of(descriptor))
    return os.pwrite(descriptor, data[: World.random.randint(1, len(data))], position)


def _slice_clock() -> float:
    """Long work pauses after some items (`pocketmq.broker.time.slices`)."""
    return World.loop.now + next(_ticks) * 0.0002


# -- all together


def _hash_by_number(kind: type) -> None:
    """Sets of such objects have the same order in each run."""
    numbers = itertools.count(1)

    def number_of(self: Any) -> int:
        number: int | None = self.__dict__.get("_simulated_number")
        if number is None:
            number = self.__dict__["_simulated_number"] = next(numbers)
        return number

    kind.__hash__ = number_of  # type: ignore[assignment]


def product_modules() -> list[ModuleType]:
    """Every module of the packages, imported."""
    for name in PACKAGES:
        package = importlib.import_module(f"pocketmq.{name}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    return [module for name, module in sorted(sys.modules.items()) if name.startswith("pocketmq.")]


def install() -> None:
    """Once, before the first run."""
    uuids = _Module(uuid, uuid4=lambda: uuid.UUID(int=World.random.getrandbits(128)))
    threads = _Module(threading, Condition=_Condition, Thread=_thread)
    sockets = _Module(socket, socket=lambda *_: ListeningSocket(World.network))
    numbers = _Module(
        random,
        choice=lambda items: World.random.choice(items),
        shuffle=lambda items: World.random.shuffle(items),
        randrange=lambda *limits: World.random.randrange(*limits),
        random=lambda: World.random.random(),
    )
    replaced: list[tuple[Any, Any]] = [
        (time, _time_module()),
        (time.perf_counter, _slice_clock),
        (threading, threads),
        (uuid, uuids),
        (random, numbers),
        (random.Random, lambda seed=None: random.Random(World.random.random() if seed is None else seed)),
        (ThreadPoolExecutor, _Executor),
        (queue.SimpleQueue, _Answers),
    ]
    modules = product_modules()
    for module in modules:
        for name, value in list(vars(module).items()):
            for real, simulated in replaced:
                if value is real:
                    setattr(module, name, simulated)
    sys.modules["pocketmq.broker.network.listening"].socket = sockets  # type: ignore[attr-defined]
    sys.modules["pocketmq.client.instance.instance"].local_ip = _own_ip  # type: ignore[attr-defined]
    sys.modules["pocketmq.client.instance.instance_config"].local_ip = _own_ip  # type: ignore[attr-defined]
    sys.modules["pocketmq.client.offsets.file_store"].default_offsets_dir = _own_folder  # type: ignore[attr-defined]
    sys.modules["pocketmq.client.clock"]._AHEAD_MS = 0  # type: ignore[attr-defined]
    sys.modules["pocketmq.client.instance.instance"]._PROCESS_HASH = 77  # type: ignore[attr-defined]
    for name in ("pocketmq.broker.network.connection", "pocketmq.client.connections.connection"):
        _hash_by_number(sys.modules[name].Connection)
    _hash_by_number(sys.modules["pocketmq.broker.cluster.replication_master"].SlaveConnection)
    _hash_by_number(sys.modules["pocketmq.broker.network.tls_stream"].TlsDetector)
    _hash_by_number(sys.modules["pocketmq.grpc_endpoint.http2.connection"].Http2Connection)
    timer_wheel.SLOTS = 2 * WINDOW_SLOTS  # type: ignore[misc]
    timer_wheel.WHEEL_BYTES = 2 * WINDOW_SLOTS * timer_wheel.SLOT_BYTES  # type: ignore[misc]
    timer_store.WINDOW_SLOTS = WINDOW_SLOTS  # type: ignore[misc]
    os.getpid = lambda: PROCESS_ID
    SystemDisk.used_ratio = lambda self, path: 0.1  # type: ignore[method-assign]
    disk.sync_descriptor = _sync  # type: ignore[assignment]
    disk.force_directory = _force_directory
    disk.reserve_blocks = _reserve
    disk.os = _Module(os, pwrite=_pwrite)  # type: ignore[assignment]
    json_file.open = _open  # type: ignore[attr-defined]


def forget_instances(loop: SimulatedLoop, machine: Machine) -> None:
    """What a program shares in its process has ended with it."""
    instances = ClientInstance.by_loop.get(loop, {})
    for client_id in [one for one in instances if one.startswith(f"{machine.ip}@")]:
        del instances[client_id]


def _own_folder() -> Path:
    life = LIFE.get()
    assert life is not None
    return World.folder / life.machine.name


def _own_ip() -> str:
    life = LIFE.get()
    return "127.0.0.1" if life is None else life.machine.ip
