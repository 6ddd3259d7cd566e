"""The clock of a server as a test sees it: from any thread, with one clear error for each mistake."""

import asyncio
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq.broker.errors import StartError
from pocketmq.store import VirtualClock
from pocketmq.testing import EmbeddedServer, NotRunningError, RocketMQ, TestingError


@pytest.fixture
def mq() -> Iterator[RocketMQ]:
    with EmbeddedServer(virtual_time=True) as server:
        yield RocketMQ(server)


def test_virtual_time_starts_at_the_walls_time_and_stands_still(mq: RocketMQ) -> None:
    start = mq.clock.now_ms()
    assert abs(start - time.time() * 1000) < 5000
    assert mq.clock.is_virtual
    time.sleep(0.02)
    assert mq.clock.now_ms() == start
    assert mq.clock.advance("1d2h30m5s100ms") == mq.clock.now_ms() == start + 95_405_100
    assert mq.clock.advance(0.25) == start + 95_405_350


def test_a_real_clock_does_not_move() -> None:
    with EmbeddedServer() as server:
        clock = RocketMQ(server).clock
        assert not clock.is_virtual
        assert abs(clock.now_ms() - time.time() * 1000) < 5000
        for move in (lambda: clock.advance("1h"), clock.advance_to_next, lambda: clock.run(2)):
            with pytest.raises(TestingError, match="virtual_time"):
                move()


def test_a_server_has_one_clock() -> None:
    with pytest.raises(StartError, match=r"virtual_time.*clock"):
        EmbeddedServer(virtual_time=True, clock=VirtualClock()).start()


def test_a_stopped_server_has_no_time() -> None:
    server = EmbeddedServer(virtual_time=True)
    with pytest.raises(NotRunningError):
        server.clock.advance("1h")
    with server:
        server.clock.run(speed=1000)
    with pytest.raises(NotRunningError):
        server.clock.now_ms()


def test_any_thread_may_move_the_clock(mq: RocketMQ) -> None:
    start = mq.clock.now_ms()
    threads = [threading.Thread(target=mq.clock.advance, args=("1h",)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mq.clock.now_ms() == start + 5 * 3_600_000


async def test_a_coroutine_moves_the_clock_while_its_loop_goes_on(mq: RocketMQ) -> None:
    mq.send("reminders", "one", delay_level=3)
    start, turns = mq.clock.aio.now_ms(), 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    assert await mq.clock.aio.advance_to_next() == start + 10_000
    assert await mq.clock.aio.advance("1s") == start + 11_000
    await mq.clock.aio.run(speed=2)
    counting.cancel()
    assert turns > 1
    assert len(mq.messages("reminders")) == 1


def test_a_store_of_the_future_is_read_by_a_server_with_the_walls_time(tmp_path: Path) -> None:
    """After three virtual days, the clock moves backwards."""
    small = {"mappedFileSizeCommitLog": 1 << 16, "timerPrecisionMs": 100}
    with EmbeddedServer(small, store=tmp_path, virtual_time=True) as server:
        mq = RocketMQ(server)
        mq.topic("orders", queues=1)
        mq.clock.advance("3d")
        for number in range(100):
            mq.send("orders", b"x" * 1000 + b"%d" % number, keys=f"k{number}")
        mq.send("orders", "in an hour", properties={"TIMER_DELAY_SEC": "3600"})
        mq.send("orders", "delayed", delay_level=5)
        mq.send("orders", "was delivered", properties={"TIMER_DELAY_SEC": "10"})
        mq.clock.advance("30s")
    with EmbeddedServer(small, store=tmp_path) as server:
        mq = RocketMQ(server)
        assert len(mq.messages("orders")) >= 101
        mq.send("orders", "new")
        mq.wait_messages("orders", 103)
        mq.send("orders", "timed", properties={"TIMER_DELAY_MS": "300"})
        texts = [message.text for message in mq.messages("orders")]
        assert texts.count("was delivered") == 1
        assert {"new", "delayed"} <= set(texts)
        assert "timed" not in texts
        mq.wait_messages("orders", 104)
        texts = [message.text for message in mq.messages("orders")]
        assert texts.count("timed") == 1
        assert texts.count("was delivered") == 1
        assert "in an hour" not in texts


@pytest.mark.parametrize("way", ["reset", "restore", "reset over HTTP", "restore over HTTP"])
def test_a_run_ends_with_a_reset_and_a_restore(way: str) -> None:
    """The state must not move while it is replaced, nor afterwards."""
    with EmbeddedServer(virtual_time=True, admin_port=0) as server:
        snapshot = server.snapshot()
        server.clock.run(1000)
        if way == "reset":
            server.reset()
        elif way == "restore":
            server.restore(snapshot)
        else:
            method, path, body = {
                "reset over HTTP": ("POST", "/api/reset", b"{}"),
                "restore over HTTP": ("PUT", "/api/snapshot", snapshot.to_bytes()),
            }[way]
            request = urllib.request.Request(f"{server.admin_url}{path}", body, method=method)
            with urllib.request.urlopen(request, timeout=5) as answer:
                assert answer.status < 300
        stopped = server.clock.now_ms()
        time.sleep(0.05)  # what a run would use to move by 50 s
        assert server.clock.now_ms() == stopped
