"""Answers that wait for the disk or for slaves: released together, in order, and not forever."""

import asyncio
from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.storing.log_waiters import RELEASED_IN_A_TURN, LogWaiters
from pocketmq.store import DiskFailedError, NewMessage
from pocketmq.store.files.mapped_files import MappedFiles

from broker_fakes import WallLoop


def appended(broker: Broker) -> int:
    """Append a message; returns the position behind it."""
    result = broker.store.append(NewMessage("orders", 0, b"x", b""))
    return result.position + result.size


def waiters_of(broker: Broker, timeout_ms: int) -> LogWaiters:
    waiters = broker.cluster.durable_log.disk_waiters
    waiters._timeout_ms = lambda: timeout_ms
    return waiters


async def test_one_pass_of_the_flusher_releases_all_that_wait(syncing: Broker) -> None:
    waiters, released = waiters_of(syncing, 30_000), []
    for number in range(3):
        waiters.add(appended(syncing), lambda is_safe, number=number: released.append((number, is_safe)))
    assert (len(waiters), released) == (3, [])
    syncing.store.flush_pass()
    await asyncio.sleep(0)
    assert (len(waiters), released) == (0, [(0, True), (1, True), (2, True)])


async def test_bytes_that_are_on_disk_wait_for_nothing(syncing: Broker) -> None:
    waiters, released = waiters_of(syncing, 30_000), []
    end = appended(syncing)
    syncing.store.flush_pass()
    waiters.add(end, released.append)
    assert released == [True]


async def test_each_waits_no_longer_than_the_timeout(syncing: Broker) -> None:
    waiters, released = waiters_of(syncing, 4000), []
    waiters._loop = loop = WallLoop()  # type: ignore[assignment]
    waiters.add(appended(syncing), released.append)
    loop.run_for(2)
    waiters.add(appended(syncing), released.append)
    loop.run_for(1.75)
    assert released == []
    loop.run_for(0.25)
    assert released == [False]
    loop.run_for(1.75)
    assert released == [False]
    loop.run_for(0.25)
    assert released == [False, False]
    syncing.store.flush_pass()
    await asyncio.sleep(0)
    assert released == [False, False]


async def test_a_disk_that_failed_releases_them_with_a_failure(
    syncing: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiters, released = waiters_of(syncing, 30_000), []
    waiters.add(appended(syncing), released.append)

    def fail(*arguments: object, **options: object) -> bool:
        raise DiskFailedError("the disk refused")

    monkeypatch.setattr(MappedFiles, "flush", fail)
    with pytest.raises(DiskFailedError):
        syncing.store.flush_pass()
    await asyncio.sleep(0)
    assert released == [False]
    waiters.add(syncing.store.log_end, released.append)
    assert released == [False, False]


async def test_many_are_released_in_their_order_over_several_iterations() -> None:
    reached, released = 0, list[int]()
    waiters = LogWaiters(lambda: reached, lambda: 30_000)
    for number in range(3 * RELEASED_IN_A_TURN):
        waiters.add(number + 1, lambda is_safe, number=number: released.append(number))
    reached = 2 * RELEASED_IN_A_TURN + 1
    waiters.look()
    assert len(released) == RELEASED_IN_A_TURN
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert released == list(range(2 * RELEASED_IN_A_TURN + 1))
    waiters.stop()
    assert released == list(range(3 * RELEASED_IN_A_TURN))


async def test_one_timer_serves_all_that_ever_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    reached = 0
    waiters, loop, timers = LogWaiters(lambda: reached, lambda: 20), asyncio.get_running_loop(), 0
    call_at = loop.call_at

    def counted(*arguments: Any, **options: Any) -> asyncio.TimerHandle:
        nonlocal timers
        timers += arguments[1] == waiters._look_at_deadlines
        return call_at(*arguments, **options)

    monkeypatch.setattr(loop, "call_at", counted)
    for _ in range(100):
        waiters.add(reached + 1, lambda is_safe: None)
        reached += 1
        waiters.look()
    assert (len(waiters), timers) == (0, 1)
