"""Timed messages delivered together and one by one: the same stored bytes and counts."""

import contextlib
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pocketmq.protocol.requests.replication import GetTimerMetrics
from pocketmq.store import VirtualClock

from broker_fakes import FakeLoop, ask, make_broker
from stored_files import stored_files
from timer_sends import send, stop, with_timer

ID = "7F0000010000000000000000000000"
"""An id less its last two digits."""


class Sent(msgspec.Struct, frozen=True):
    """A timed message of a test. `more` may have the number of the message in its values."""

    queue_id: int = 1
    seconds: int = 2
    more: tuple[tuple[str, str], ...] = ()
    topic: str = "T"
    body: bytes = b"x"
    unique_id: str = ID + "{number:02d}"

    def properties(self, number: int) -> dict[str, str]:
        return {
            "UNIQ_KEY": self.unique_id.format(number=number),
            "TIMER_DELAY_SEC": str(self.seconds),
            **{name: value.format(number=number) for name, value in self.more},
        }


MORE = st.lists(
    st.sampled_from(
        (
            ("TAGS", "a"),
            ("KEYS", "k {number}"),
            ("KEYS", "k"),
            ("order", "{number}"),
            ("colour", "é"),
            ("TIMER_DEL_UNIQKEY", "T+" + ID + "00"),
            ("TIMER_DEL_UNIQKEY", "T+" + ID + "03"),
            ("TIMER_ROLL_TIMES", "1"),
            ("TIMER_ENQUEUE_MS", "5"),
            ("MY_UNIQ_KEY", "x"),
            ("REAL_TOPIC", "other"),
            ("TIMER_OUT_MS", "x"),
        )
    ),
    max_size=2,
).map(tuple)
SENT = st.builds(
    Sent,
    st.integers(0, 2),
    st.sampled_from((1, 2, 2, 2, 5)),
    st.just(()) | MORE,
    st.sampled_from(("T", "T", "T", "U")),
    st.binary(min_size=1, max_size=9),
    st.sampled_from((ID + "{number:02d}", ID + "{number:02d}", "short-{number}", "é" * 16)),
)


async def delivered(
    folder: Path, sent: list[Sent], *, together: bool
) -> tuple[dict[str, dict[int, bytes]], tuple[bytes, int, list[int]]]:
    """The files of a broker that delivered these messages, its counts, and how many were delivered in each step."""
    clock = VirtualClock()
    loop = FakeLoop(clock)
    broker = with_timer(make_broker(folder, clock, loop=loop, store={"timer_roll_window_slot": 4}))
    delivery, steps = broker.delayed.timer.delivery, list[int]()
    if not together:
        delivery._plans.find = lambda record, enqueued, now: None  # type: ignore[method-assign]
    append_alike = broker.store.append_alike

    def watched(template: object, messages: list[object]) -> object:
        stored = append_alike(template, messages)  # type: ignore[arg-type]
        steps.append(0 if stored is None else len(stored.positions))
        return stored

    broker.store.append_alike = watched  # type: ignore[method-assign,assignment]
    for number, message in enumerate(sent):
        with contextlib.suppress(ValueError):  # no recall handle for a moment that is no number; it is stored
            await send(
                broker, message.body, message.topic, queue_id=message.queue_id, **message.properties(number)
            )
        clock.advance(40)
    loop.run_for(12_000)
    counts = (await ask(broker, GetTimerMetrics())).body, delivery.count, steps
    stop(broker)
    return stored_files(folder), counts


@settings(max_examples=8, deadline=None)
@given(sent=st.lists(SENT, min_size=1, max_size=12))
@example(sent=[Sent(queue_id=number % 3) for number in range(12)])
@example(sent=[Sent(seconds=1), Sent(seconds=1), Sent(seconds=1, unique_id="short-{number}")])
@example(sent=[Sent(seconds=1), Sent(seconds=1), Sent(seconds=1, unique_id=ID + "{number:02d}longer")])
@example(
    sent=[
        Sent(more=(("TIMER_DEL_UNIQKEY", "T+" + ID + "03"),) if number == 9 else ()) for number in range(12)
    ]
)
async def test_messages_delivered_together_leave_the_same_bytes(sent: list[Sent]) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        files, counts = await delivered(Path(one), sent, together=True)
        wanted_files, wanted_counts = await delivered(Path(two), sent, together=False)
    assert files == wanted_files
    assert counts[:2] == wanted_counts[:2]


@pytest.mark.parametrize("more", [(), (("KEYS", "k"), ("TAGS", "a"))])
async def test_alike_messages_of_a_slot_are_delivered_in_one_step(
    tmp_path: Path, more: tuple[tuple[str, str], ...]
) -> None:
    sent = [Sent(queue_id=number % 3, more=more) for number in range(14)]
    _, (_, count, steps) = await delivered(tmp_path, sent, together=True)
    assert count == 14
    assert sum(steps) >= 11, "all but the first of each queue"
    assert len(steps) <= 4
