"""What one seed decides before the run begins: the cluster, the clients, and the list of faults.

A fault is an `Event`; the list can be shortened and the run repeated, which is how a failing seed is shrunk. Everything
else that is random in a run comes from generators with the same seed, one for each machine.
"""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

CALM_SECONDS = 3.0
"""Before the first fault."""
LONGEST_FAULT_SECONDS = 25.0


class Event(NamedTuple):
    """One fault: it happens `at` that second, and is over `seconds` later."""

    at: float
    kind: str
    target: str
    seconds: float
    other: str = ""
    """The other side of a partition."""

    def __str__(self) -> str:
        other = f" from {self.other}" if self.other else ""
        return f"{self.at:7.3f} s  {self.kind} {self.target}{other} for {self.seconds:.3f} s"


class Plan(NamedTuple):
    """The cluster and its clients."""

    seed: int
    emulate: str
    flush: str
    role: str
    has_slave: bool
    has_record_crc: bool
    """Whether records have a CRC of all their bytes, not only of the body."""
    queues: int
    seconds: float
    """From when on there are no faults, and nothing new is sent."""
    send_pause: float
    """Mean seconds between two sends of one producer."""
    producers: tuple[str, ...]
    consumers: tuple[str, ...]
    brokers: tuple[str, ...]
    name_servers: tuple[str, ...]
    share_failing: float
    """Of the calls of a listener that fail."""
    uses: frozenset[str]
    """What clients do beside sending and consuming."""
    events: tuple[Event, ...] = ()

    @property
    def masters(self) -> tuple[str, ...]:
        return tuple(name for name in self.brokers if broker_name_of(name) == name)

    @property
    def grpc_slaves(self) -> tuple[str, ...]:
        """Slaves with a gRPC port."""
        has_port = "grpc at a slave" in self.uses
        return tuple(name for name in self.brokers if has_port and name not in self.masters)

    def random(self, name: str) -> Random:
        return Random(f"{self.seed} {name}")

    def __str__(self) -> str:
        uses = " ".join(sorted(self.uses))
        return (
            f"seed {self.seed}: emulate {self.emulate}, {self.flush}, {self.role}, "
            f"name servers {' '.join(self.name_servers)}, brokers {' '.join(self.brokers)}, "
            f"{len(self.producers)} producers, {len(self.consumers)} consumers, {self.queues} queues, "
            f"{self.seconds:.0f} s, {uses}, {len(self.events)} faults"
        )


USES = ("ordered", "delayed", "transactions", "pop", "lite pull", "batches", "broadcast", "requests")
"""And "grpc", by brokers of the 5.x line."""
LATER_USES = {"dead letters": 0.3, "recalls": 0.4, "grpc in order": 0.6, "grpc at a slave": 0.6}
"""And how probable they are where they can be. They have a generator of their own: the plan of a seed keeps what
it had before."""
TIMER_FAULT = "power loss after a save of the timer"


def broker_name_of(machine: str) -> str:
    """b0 for the slave b0-1, and for its master."""
    return machine.split("-")[0]


def plan_of(seed: int) -> Plan:
    """The plan of a seed, with all its events."""
    chance, more = Random(seed), Random(f"{seed} more")
    has_slave = chance.random() < 0.4
    plan = Plan(
        seed,
        emulate=chance.choice("45"),
        flush=chance.choice(("SYNC_FLUSH", "ASYNC_FLUSH")),
        role="SYNC_MASTER" if has_slave and chance.random() < 0.6 else "ASYNC_MASTER",
        has_slave=has_slave,
        has_record_crc=chance.random() < 0.5,
        queues=chance.choice((1, 2, 4)),
        seconds=chance.uniform(15, 60),
        send_pause=chance.choice((0.05, 0.2, 0.5)),
        producers=("p0", "p1")[: chance.choice((1, 1, 2))],
        consumers=("c0", "c1")[: chance.choice((1, 2))],
        brokers=("b0", *(("b0-1",) if has_slave else ()), *(("b1",) if chance.random() < 0.25 else ())),
        name_servers=("n0", "n1") if more.random() < 0.3 else ("n0",),
        share_failing=chance.choice((0.0, 0.0, 0.1)),
        uses=frozenset(use for use in USES if chance.random() < 0.3),
    )
    if plan.emulate == "5" and more.random() < 0.5:
        plan = plan._replace(uses=plan.uses | {"grpc"})
    later = Random(f"{seed} later")
    plan = plan._replace(uses=plan.uses | _later_uses(plan, later))
    return plan._replace(events=tuple(sorted([*_events(plan, chance), *_timer_faults(plan, later)])))


def _later_uses(plan: Plan, later: Random) -> set[str]:
    uses = {use for use, share in LATER_USES.items() if later.random() < share}
    if plan.emulate == "4":
        uses.discard("recalls")
    if "grpc" not in plan.uses:
        uses.discard("grpc in order")
    if "grpc" not in plan.uses or not plan.has_slave:
        uses.discard("grpc at a slave")
    return uses


def _timer_faults(plan: Plan, later: Random) -> Iterator[Event]:
    is_wanted = later.random() < 0.6
    if plan.emulate == "5" and plan.uses & {"delayed", "recalls"} and is_wanted:
        at = round(later.uniform(min(10, plan.seconds), plan.seconds - 5), 3)
        yield Event(at, TIMER_FAULT, later.choice(plan.masters), round(later.uniform(5, 20), 3))


def _events(plan: Plan, chance: Random) -> Iterator[Event]:
    kinds = _possible(plan)
    for _ in range(chance.choice((0, 1, 2, 4, 8))):
        kind = chance.choice(sorted(kinds))
        target = chance.choice(kinds[kind])
        other = ""
        if kind == "partition":
            servers = *plan.name_servers, *plan.brokers
            other = chance.choice([name for name in servers if name != target])
        yield Event(
            round(chance.uniform(CALM_SECONDS, plan.seconds), 3),
            kind,
            target,
            round(chance.uniform(0.05, LONGEST_FAULT_SECONDS) * chance.random(), 3),
            other,
        )


def _possible(plan: Plan) -> dict[str, tuple[str, ...]]:
    clients = (*plan.producers, *plan.consumers)
    everybody = (*plan.name_servers, *plan.brokers, *clients)
    return {
        "power loss": plan.brokers,
        "kill": (*plan.brokers, *plan.name_servers),
        "stop": plan.brokers,
        "kill client": plan.consumers,
        "cut": everybody,
        "partition": everybody,
        "slow network": ("n0",),
        "full disk": plan.brokers,
        "broken disk": plan.brokers,
        "slow disk": plan.brokers,
        "clock forward": everybody,
        "clock back": everybody,
    }
