"""Virtual time: what runs, in which order, and what a jump costs."""

import asyncio

import pytest
from pocketmq.testing.time.virtual_time import VirtualTime, step_ms
from pocketmq.testing.time.virtual_timers import VirtualTimers

HOUR_MS = 3_600_000


@pytest.fixture
def moving() -> VirtualTime:
    return VirtualTime()


@pytest.fixture
def timers(moving: VirtualTime) -> VirtualTimers:
    return moving.join()


@pytest.mark.parametrize(
    ("step", "ms"),
    [
        (0, 0),
        (1.5, 1500),
        (7200, 7_200_000),
        ("2h30m", 9_000_000),
        ("1d2h30m5s100ms", 95_405_100),
        ("100ms", 100),
        ("5m", 300_000),
        ("0s", 0),
    ],
)
def test_a_step_is_seconds_or_a_text(step: str | float, ms: int) -> None:
    assert step_ms(step) == ms


@pytest.mark.parametrize(
    "step",
    [
        -1,
        -0.001,
        "",
        "h",
        "5",
        "-5s",
        "2h-3m",
        "30m2h",
        "1x",
        "1h 2m",
        "1.5h",
        "١h",
        float("nan"),
        float("inf"),
        None,
        True,
        "5s5s",
    ],
)
def test_another_step_is_refused_with_what_is_allowed(step: object) -> None:
    with pytest.raises(ValueError, match=r"number of seconds.*1d2h30m5s100ms") as refused:
        step_ms(step)  # type: ignore[arg-type]
    assert repr(step) in str(refused.value)


async def test_time_stands_still_until_it_is_moved(timers: VirtualTimers, moving: VirtualTime) -> None:
    ran: list[int] = []
    timers.call_later(0.001, lambda: ran.append(1))
    before = moving.now_ms()
    await asyncio.sleep(0.01)
    assert (ran, moving.now_ms()) == ([], before)
    assert await moving.advance("1ms") == before + 1
    assert ran == [1]


async def test_timers_run_in_the_order_of_their_times_with_a_turn_between_them(
    timers: VirtualTimers, moving: VirtualTime
) -> None:
    ran: list[tuple[str, int]] = []
    start = moving.now_ms()

    def note(name: str) -> None:
        ran.append((name, moving.now_ms() - start))
        asyncio.get_running_loop().call_soon(ran.append, (f"turn after {name}", moving.now_ms() - start))

    timers.call_later(3, lambda: note("third"))
    timers.call_later(1, lambda: note("first"))
    timers.call_at(start + 1000, lambda: note("second"))
    await moving.advance(10)
    assert ran == [
        ("first", 1000),
        ("turn after first", 1000),
        ("second", 1000),
        ("turn after second", 1000),
        ("third", 3000),
        ("turn after third", 3000),
    ]
    assert moving.now_ms() == start + 10_000


async def test_timers_set_on_the_way_run_in_the_same_step(timers: VirtualTimers, moving: VirtualTime) -> None:
    ran: list[int] = []

    def again() -> None:
        ran.append(timers.clock.elapsed_ms)
        timers.call_later(4, again)

    timers.call_later(1, again)
    await moving.advance(10)
    assert ran == [1000, 5000, 9000]


async def test_a_woken_task_comes_to_rest_before_time_goes_on(
    timers: VirtualTimers, moving: VirtualTime
) -> None:
    seen: list[int] = []

    async def checks() -> None:
        while True:
            await timers.sleep(30, timers.clock.now_ms)
            for _ in range(20):
                await asyncio.sleep(0)
            seen.append(timers.clock.elapsed_ms)

    task = asyncio.create_task(checks())
    await asyncio.sleep(0)
    await moving.advance("90s")
    task.cancel()
    assert seen == [30_000, 60_000, 90_000]


async def test_callbacks_of_the_next_turns_run_before_time_goes_on(
    timers: VirtualTimers, moving: VirtualTime
) -> None:
    seen: list[int] = []

    def soon(left: int) -> None:
        seen.append(timers.clock.elapsed_ms)
        if left:
            timers.call_soon(lambda: soon(left - 1))

    timers.call_later(1, lambda: soon(9))
    timers.call_later(1.001, lambda: seen.append(-1))
    await moving.advance(2)
    assert seen == [1000] * 10 + [-1]


async def test_a_failing_timer_stops_neither_time_nor_the_others(
    timers: VirtualTimers, moving: VirtualTime, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[int] = []
    timers.call_later(1, lambda: [][0])
    timers.call_later(2, lambda: ran.append(2))
    await moving.advance(3)
    assert ran == [2]
    assert "failed" in caplog.text


async def test_a_jump_skips_periods_without_work(timers: VirtualTimers, moving: VirtualTime) -> None:
    ran: list[int] = []
    work_ms = timers.clock.now_ms() + 71 * HOUR_MS + 50
    timers.repeat(
        lambda: 0.1,
        lambda: ran.append(timers.clock.elapsed_ms),
        lambda: None if ran else work_ms,
        is_event=False,
    )
    await moving.advance("72h")
    assert ran == [71 * HOUR_MS + 100]
    assert timers.fired == 1


async def test_an_action_that_fills_gaps_runs_before_the_next_timer_and_at_the_end(
    timers: VirtualTimers, moving: VirtualTime
) -> None:
    ran: list[str] = []
    timers.repeat(
        lambda: 1,
        lambda: ran.append(f"fill {timers.clock.elapsed_ms}"),
        lambda: None,
        is_event=False,
        samples_gaps=True,
    )
    timers.call_later(5, lambda: ran.append("timer"))
    await moving.advance(20)
    assert ran == ["fill 5000", "timer", "fill 20000"]


async def test_the_next_event_is_no_upkeep(timers: VirtualTimers, moving: VirtualTime) -> None:
    ran: list[str] = []
    start = moving.now_ms()
    timers.call_later(1, lambda: ran.append("upkeep"), is_event=False)
    timers.call_later(5, lambda: ran.append("event"))
    assert await moving.advance_to_next() == start + 5000
    assert ran == ["upkeep", "event"]
    assert await moving.advance_to_next() is None
    assert moving.now_ms() == start + 5000


async def test_a_cancelled_timer_does_not_run_and_leaves_nothing(
    timers: VirtualTimers, moving: VirtualTime
) -> None:
    ran: list[int] = []
    for _ in range(10_000):
        timers.call_later(HOUR_MS, lambda: ran.append(1)).cancel()
    kept = timers.call_later(2, lambda: ran.append(2))
    assert timers.waiting == 1
    assert len(timers._heap) < 200
    await moving.advance("100d")
    kept.cancel()
    assert ran == [2]


async def test_time_runs_faster_than_the_walls_until_the_next_step(
    timers: VirtualTimers, moving: VirtualTime
) -> None:
    ran = asyncio.Event()
    start = moving.now_ms()
    timers.call_later(100, ran.set)
    moving.run(speed=10_000)
    await ran.wait()
    assert moving.now_ms() >= start + 100_000
    await moving.advance(0)
    stands = moving.now_ms()
    await asyncio.sleep(0.03)
    assert moving.now_ms() == stands


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf"), "fast", None, True])
async def test_a_speed_is_a_number_above_0(moving: VirtualTime, speed: object) -> None:
    with pytest.raises(ValueError, match="speed must be a number above 0"):
        moving.run(speed)  # type: ignore[arg-type]


@pytest.mark.parametrize("step", ["-1s", "9999999d", 1e300])
async def test_a_refused_step_moves_nothing(moving: VirtualTime, step: str | float) -> None:
    start = moving.now_ms()
    with pytest.raises(ValueError, match="step"):
        await moving.advance(step)
    assert moving.now_ms() == start


async def test_two_steps_at_once_follow_one_another(timers: VirtualTimers, moving: VirtualTime) -> None:
    start = moving.now_ms()
    await asyncio.gather(moving.advance("1h"), moving.advance("2h"))
    assert moving.now_ms() == start + 3 * HOUR_MS
