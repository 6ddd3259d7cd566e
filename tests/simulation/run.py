"""Runs seeds: `python -m simulation.run --seeds 200`, or `--seed 17 --events 3,7 --trace` to look at one.

A seed that fails is shrunk: events are left out as long as the run still fails. What is printed repeats it. Hashes of
strings, and with them the order of sets, must be the same in each process: the program starts itself again with
PYTHONHASHSEED=0.
"""

import argparse
import contextlib
import logging
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

from simulation.patches import install
from simulation.plan import Plan, plan_of
from simulation.watching import watch
from simulation.world import Outcome, Run

MEMORY = Path("/dev/shm")
REPEATS = 2


def run_plan(plan: Plan, *, trace_all: bool = False) -> Outcome:
    memory = MEMORY if MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="simulation-", dir=memory) as folder, contextlib.chdir(folder):
        run = Run(plan, Path())
        run.trace_all = trace_all
        return run.run()


def run_checked(plan: Plan, *, trace_all: bool = False) -> Outcome:
    """A turn counts as too long if the same one is in each of three runs: in one, the machine may have been busy."""
    outcome = run_plan(plan, trace_all=trace_all)
    long_turns = outcome.long_turns
    for _ in range(REPEATS):
        if outcome.failure or not long_turns:
            return outcome
        again = run_plan(plan).long_turns
        long_turns = {number: text for number, text in long_turns.items() if number in again}
    if not long_turns:
        return outcome
    return outcome._replace(failure=f"a turn of the loop is too long: {next(iter(long_turns.values()))}")


def shrink(plan: Plan, kept: list[int]) -> list[int]:
    """The numbers of fewer events with which the plan still fails."""
    for number in list(kept):
        fewer = [one for one in kept if one != number]
        if run_checked(with_events(plan, fewer)).failure:
            kept = fewer
    return kept


def with_events(plan: Plan, kept: list[int]) -> Plan:
    return plan._replace(events=tuple(plan.events[number] for number in kept))


def report(plan: Plan, outcome: Outcome) -> None:
    """One command that repeats it, and what is left of its events."""
    kept = shrink(plan, list(range(len(plan.events))))
    print(f"FAILED {plan}\n  {outcome.failure}")
    outcome = run_checked(with_events(plan, kept))
    print(f"  with {len(kept)} of its faults: {outcome.failure}")
    for number in kept:
        print(f"    {number:2}  {plan.events[number]}")
    events = ",".join(map(str, kept)) or "none"
    print(f"  repeat: make simulate SEED={plan.seed} EVENTS={events}", flush=True)


def run_seeds(first: int, count: int) -> int:
    """How many have failed."""
    began, virtual, failed, longest_turn = time.monotonic(), 0.0, 0, 0.0
    for seed in range(first, first + count):
        plan = plan_of(seed)
        outcome = run_checked(plan)
        longest_turn = max(longest_turn, outcome.longest_turn)
        virtual += outcome.virtual_seconds
        if outcome.failure:
            failed += 1
            report(plan, outcome)
    minutes = (time.monotonic() - began) / 60
    print(
        f"{count} seeds, {failed} failed: {count / minutes:.0f} a minute, {virtual / 3600:.1f} hours of virtual time, "
        f"longest turn {longest_turn * 1000:.0f} ms"
    )
    return failed


def find(mutation: str, most: int) -> int:
    """How many seeds it takes to find a mistake that was put into the product; 0 if none of so many does."""
    from simulation.mutations import mutate

    mutate(mutation)
    for seed in range(most):
        failure = run_plan(plan_of(seed)).failure
        if failure:
            print(f"{mutation}: found by seed {seed}: {failure[:300]}", flush=True)
            return seed + 1
    print(f"{mutation}: not found by {most} seeds", flush=True)
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--events", help="numbers of the events to keep, or none")
    parser.add_argument("--mutate", help="a mistake of mutations.py")
    parser.add_argument("--trace", action="store_true", help="print every line of the trace")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "simulation.run", *sys.argv[1:]])
    logging.basicConfig(format="%(name)s: %(message)s", stream=sys.stdout)
    logging.getLogger("pocketmq").propagate = arguments.trace
    warnings.simplefilter("ignore", ResourceWarning)
    install()
    watch()
    if arguments.mutate:
        sys.exit(0 if find(arguments.mutate, arguments.seeds) else 1)
    if arguments.seed is None:
        sys.exit(1 if run_seeds(arguments.first, arguments.seeds) else 0)
    plan = plan_of(arguments.seed)
    if arguments.events:
        kept = [] if arguments.events == "none" else [int(text) for text in arguments.events.split(",")]
        plan = with_events(plan, kept)
    print(plan)
    for event in plan.events:
        print(f"  {event}")
    outcome = run_checked(plan, trace_all=arguments.trace)
    if arguments.trace:
        print("\n".join(outcome.last_lines))
    print(f"{outcome.failure or 'passed'}\n{outcome.counts}\ntrace {outcome.trace_hash}")
    sys.exit(1 if outcome.failure else 0)


if __name__ == "__main__":
    main()
