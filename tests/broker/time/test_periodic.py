"""Repeated actions: one that visits everything takes several loop iterations and does not hold others up."""

import asyncio
import itertools
from collections.abc import Generator

import pytest
from pocketmq.broker.time.periodic import Periodic, PeriodicActions
from pocketmq.broker.time.slices import ITEMS_IN_A_TURN
from pocketmq.broker.time.timers import Timers
from pocketmq.store import WallClock

from broker_fakes import turns
from waiting import until


async def run(action: Periodic, seen: list[int], enough: int) -> PeriodicActions:
    actions = PeriodicActions(Timers(WallClock()))
    actions.start([action])
    await until(lambda: len(seen) >= enough)
    return actions


async def test_a_long_action_lets_others_run_and_is_not_started_twice() -> None:
    seen, others = list[int](), list[int]()

    def visit() -> Generator[None]:
        for number in range(10 * ITEMS_IN_A_TURN):
            seen.append(number)
            yield

    async def other() -> None:
        while len(seen) < 10 * ITEMS_IN_A_TURN:
            others.append(len(seen))
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    actions = await run(Periodic("visit", 0.0, visit), seen, 10 * ITEMS_IN_A_TURN)
    actions.stop()
    await task
    assert max(after - before for before, after in itertools.pairwise(others)) <= ITEMS_IN_A_TURN
    assert seen == [number % (10 * ITEMS_IN_A_TURN) for number in range(len(seen))]  # one after the other


async def test_an_action_that_fails_between_two_items_is_logged_and_repeated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[int] = []

    def visit() -> Generator[None]:
        seen.append(len(seen))
        yield
        raise RuntimeError("made up")

    actions = await run(Periodic("visit", 0.001, visit), seen, 3)
    actions.stop()
    assert caplog.text.count("periodic action visit failed") >= 2


async def test_nothing_is_visited_after_the_stop() -> None:
    seen: list[int] = []

    def visit() -> Generator[None]:
        for number in range(100 * ITEMS_IN_A_TURN):
            seen.append(number)
            yield

    actions = await run(Periodic("visit", 0.0, visit), seen, 1)
    actions.stop()
    visited = len(seen)
    await turns(3)
    assert len(seen) == visited
