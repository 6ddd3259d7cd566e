"""Seeds of the simulation, in processes of their own: it changes what the product asks the system for."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from simulation import run
from simulation.loop import SimulatedLoop
from simulation.machines import Machine
from simulation.mutations import MUTATIONS
from simulation.plan import LATER_USES, TIMER_FAULT, Plan, plan_of
from simulation.world import Outcome

TESTS = Path(__file__).resolve().parent.parent
GRPC_SEED = 11767
"""Two name servers, gRPC clients that give messages up, two faults."""
LATER_SEED = 1820
"""A slave with a gRPC port, gRPC in order, recalls, dead letters, two faults."""

pytestmark = pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"), reason="finds files by descriptor through /proc"
)


def simulate(*words: str, hash_seed: str = "random") -> str:
    """What it prints; fails if a seed fails."""
    done = subprocess.run(
        [sys.executable, "-m", "simulation.run", *words],
        cwd=TESTS, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONHASHSEED": hash_seed},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 17, GRPC_SEED, LATER_SEED])
def test_the_same_seed_gives_the_same_trace(seed: int) -> None:
    """Seed 2 locks queues, 17 has disk errors, whose text has the folder's name."""
    first, second = (simulate("--seed", str(seed), hash_seed=one).splitlines()[-1] for one in "12")
    assert first.startswith("trace ")
    assert first == second


@pytest.mark.parametrize("small", [101, 140])
def test_every_invariant_holds_for_a_small_seed(small: int) -> None:
    """Few messages, eight faults."""
    assert " 0 failed" in simulate("--first", str(small), "--seeds", "1")


def test_grpc_clients_and_two_name_servers_take_part() -> None:
    """Every way in which gRPC clients treat a message is in the run."""
    plan, printed = plan_of(GRPC_SEED), simulate("--seed", str(GRPC_SEED))
    assert plan.name_servers == ("n0", "n1")
    for counted in ("'gRPC transactions'", "'held messages'", "'postponed messages'", "'messages given up'"):
        assert counted in printed


def test_order_over_grpc_recalls_dead_letters_and_a_slave_take_part() -> None:
    assert plan_of(LATER_SEED).uses >= set(LATER_USES)
    printed = simulate("--seed", str(LATER_SEED))
    for counted in (
        "ordered messages given up",
        "recalls",
        "dead letters",
        "receives at slaves",
        TIMER_FAULT,
    ):
        assert counted in printed


def test_a_long_turn_is_noted_and_counts_if_it_is_in_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = SimulatedLoop()
    loop.LONG_TURN_SECONDS = 0.02  # type: ignore[misc]
    life = Machine("b0", "10.0.0.1", loop, Random(1), None).begin()

    def work() -> None:
        end = time.thread_time() + 0.03
        while time.thread_time() < end:
            pass

    async def wait() -> None:
        loop.call_soon(work, context=life.context.copy())
        await asyncio.sleep(1)

    loop.run_until_complete(wait())
    loop.close()
    assert loop.longest_turn > 0.02
    assert list(loop.long_turns) == [1]

    def run_plan(_: Plan, *, trace_all: bool = False) -> Outcome:
        return Outcome("", "", 1.0, {}, [], 0.3, turns.pop())

    monkeypatch.setattr(run, "run_plan", run_plan)
    for first, second, failure in ((7, 8, ""), (7, 7, "a turn of the loop is too long: 300 ms")):
        turns = [{7: "300 ms"}, {second: "290 ms"}, {first: "300 ms"}]
        assert run.run_checked(plan_of(1)).failure == failure


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", [1000, 1050, 1100, 1150])
def test_every_invariant_holds_for_fifty_seeds(first: int) -> None:
    assert " 0 failed" in simulate("--first", str(first), "--seeds", "50")


@pytest.mark.soak
@pytest.mark.parametrize("mistake", sorted(MUTATIONS))
def test_a_mistake_in_the_product_is_found(mistake: str) -> None:
    assert "found by seed" in simulate("--mutate", mistake, "--seeds", "500")


@pytest.mark.slow
def test_every_mistake_can_still_be_made() -> None:
    """The names that they change exist."""
    program = "from simulation.patches import install; from simulation.mutations import MUTATIONS, mutate; install()"
    program += "\nfor mistake in MUTATIONS: mutate(mistake)"
    subprocess.run([sys.executable, "-c", program], cwd=TESTS, check=True)
