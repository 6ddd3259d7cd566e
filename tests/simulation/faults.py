"""The faults of a plan: each `Event` changes machines, disks, clocks or the network, and ends by itself."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from pocketmq.store import layout

from simulation.clients import DELAY_SECONDS, POP_INVISIBLE_MS
from simulation.machines import Machine
from simulation.network import NEUTRAL
from simulation.plan import TIMER_FAULT, Event

if TYPE_CHECKING:
    from simulation.world import Run

RESTART_SECONDS = 1.0
SLOWEST_POP_MS = 2_000


class Faults:
    """Of one run."""

    def __init__(self, run: "Run") -> None:
        self._run, self._loop, self._books = run, run.loop, run.books

    def happen(self, event: Event) -> None:
        run = self._run
        run.trace(str(event))
        self._books.counts[event.kind] += 1
        name, machine = event.target, run.machines[event.target]
        after = self._loop.call_later
        match event.kind:
            case "power loss":
                run.end_life(name, event.seconds, loses_power=True)
            case "kill" | "kill client":
                run.end_life(name, event.seconds)
            case "stop":
                self._loop.create_task(run.stop(name, event.seconds))
            case "cut":
                run.network.cut(name)
            case "partition":
                run.network.block(name, event.other)
                after(event.seconds, run.network.unblock)
            case "slow network":
                run.network.slow_seconds = 0.5
                after(event.seconds, setattr, run.network, "slow_seconds", 0.0)
            case "full disk":
                machine.is_full = True
                self._books.receipts.disturbed(name, event.seconds)
                after(event.seconds, setattr, machine, "is_full", False)
            case "broken disk" if machine.disk is not None:
                machine.disk.broken = True
                self._books.receipts.disturbed(name, event.seconds)
                run.unsafe.add(name)
                after(event.seconds, self._repair, machine)
            case "slow disk":
                machine.slow_disk_seconds = 3.0
                run.unsafe.add(name)
                after(event.seconds, setattr, machine, "slow_disk_seconds", 0.0)
            case "clock forward":
                machine.clock.skew_ms += int(event.seconds * 1000)
                self._books.hurried_seconds += event.seconds
                self._compare_clocks(name)
            case "clock back":
                machine.clock.skew_ms -= int(event.seconds * 1000)
                # A message that seems to wait longer than its level's delay is delivered at once, as officially. A gRPC
                # client says by its own clock when it is due.
                self._books.hurried_seconds += max(*DELAY_SECONDS.values(), event.seconds)
                self._compare_clocks(name)
            case _ if event.kind == TIMER_FAULT:
                self._lose_power_after_timer(name, event.seconds)

    def make_calm(self) -> None:
        """No faults from now on."""
        network = self._run.network
        network.unblock()
        network.slow_seconds = 0.0
        for machine in self._run.machines.values():
            machine.is_full, machine.slow_disk_seconds = False, 0.0
            machine.log_needs_seconds, machine.on_forced = 0.0, None
            if machine.disk is not None and machine.disk.broken:
                self._repair(machine)

    def _compare_clocks(self, changed: str) -> None:
        self._books.receipts.clock_changed(changed)
        skews = [machine.clock.skew_ms for machine in self._run.machines.values()]
        if max(skews) - min(skews) > POP_INVISIBLE_MS - SLOWEST_POP_MS:
            self._books.pops_expire = True

    def _repair(self, machine: Machine) -> None:
        """Its program has seen the disk fail, and must be started again."""
        assert machine.disk is not None
        if machine.disk.broken:  # not yet at the end of all faults
            machine.disk.broken = False
            self._run.end_life(machine.name, RESTART_SECONDS)

    def _lose_power_after_timer(self, name: str, seconds: float) -> None:
        """The commit log has a disk of its own, which falls behind. The power is lost as soon as the timer, which has
        delivered something meanwhile, has saved its files; or after some time, if it never does."""
        machine, life = self._run.machines[name], self._run.machines[name].life
        if machine.log_needs_seconds or not machine.is_up:
            return
        machine.log_needs_seconds = seconds
        self._run.unsafe.add(name)
        delivered = self._delivered(name)

        def lose_power() -> None:
            machine.log_needs_seconds, machine.on_forced = 0.0, None
            if machine.life is life and not self._run.is_calm:
                self._run.end_life(name, RESTART_SECONDS, loses_power=True)

        saves = itertools.count()

        def forced(path: Path) -> None:
            """The first save was begun before the delivery."""
            if path.name == layout.TIMER_CHECKPOINT and self._delivered(name) > delivered and next(saves):
                machine.on_forced = None
                self._loop.call_soon(lose_power, context=NEUTRAL)

        machine.on_forced = forced
        self._loop.call_later(seconds, lose_power, context=NEUTRAL)

    def _delivered(self, name: str) -> int:
        """How many timed messages a broker has delivered in this life."""
        node = self._run.nodes.get(name)
        return 0 if node is None else node.broker.delayed.timer.delivery.count
