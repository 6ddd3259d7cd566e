"""Seeds of the simulation, in processes of their own: it changes what the product asks the system for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.mutations import MUTATIONS

TESTS = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"), reason="finds files by descriptor through /proc"
)


def simulate(*words: str) -> str:
    """What it prints; fails if a seed fails."""
    done = subprocess.run(
        [sys.executable, "-m", "simulation.run", *words],
        cwd=TESTS, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 17])
def test_the_same_seed_gives_the_same_trace(seed: int) -> None:
    """Seed 2 locks queues, 17 has disk errors, whose text has the folder's name."""
    first, second = (simulate("--seed", str(seed)).splitlines()[-1] for _ in range(2))
    assert first.startswith("trace ")
    assert first == second


@pytest.mark.parametrize("small", [101, 140])
def test_every_invariant_holds_for_a_small_seed(small: int) -> None:
    """Few messages, eight faults."""
    assert " 0 failed" in simulate("--first", str(small), "--seeds", "1")


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
@pytest.mark.parametrize("mistake", sorted(MUTATIONS))
def test_a_mistake_can_still_be_made(mistake: str) -> None:
    """The names that it changes exist."""
    subprocess.run(
        [sys.executable, "-c", "import sys; from simulation.patches import install; from simulation import mutations;"
         "install(); mutations.MUTATIONS[sys.argv[1]]()", mistake],
        cwd=TESTS, capture_output=True, text=True, check=True,
    )  # fmt: skip
