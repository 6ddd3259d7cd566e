"""The ends of transactions of a pass: two brokers get the same bytes, one of them in reads of one frame."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pocketmq.broker.broker import Broker
from pocketmq.protocol.wire.command import JSON, ONEWAY_FLAG, ROCKETMQ, Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.store import VirtualClock

from broker_fakes import close_broker, make_broker
from send_frames import a_send
from stored_files import stored_files
from transaction_sends import COMMIT, ROLLBACK, UNKNOWN
from wire_without_socket import Wire

ID = "7F00000100002A9F00000000000000{:02X}"
MORE: list[dict[str, str]] = [
    {},
    {"TAGS": "A", "KEYS": "k{}"},
    {"KEYS": "k{} b"},
    {"order": "{}"},
    {"DELAY": "1"},
    {"CHECK_IMMUNITY_TIME_IN_SECONDS": "9"},
    {"UNIQ_KEY": "short-{}"},
]


def half(number: int, form: int, more: dict[str, str], queue_id: int) -> bytes:
    pairs = {"TRAN_MSG": "true", "PGROUP": "group", "UNIQ_KEY": ID.format(number)}
    pairs |= {name: text.format(number) for name, text in more.items()}
    fields = {"e": str(queue_id), "f": "4", "g": str(1_700_000_000_000 + number)}
    return a_send(form=form, opaque=1000 + number, body=b"x" * (number + 1), pairs=pairs, **fields)


def end(
    reply: Command, opaque: int, how: int, form: int, flag: int = 0, changes: dict[str, str] | None = None
) -> bytes:
    fields = reply.fields or {}
    values = {
        "producerGroup": "group",
        "tranStateTableOffset": fields["queueOffset"],
        "commitLogOffset": str(int(fields["msgId"][16:], 16)),
        "commitOrRollback": str(how),
        "fromTransactionCheck": "false",
        "msgId": ID.format(0),
        **(changes or {}),
    }
    return encode_frame(Command(37, opaque, flag, None, values, None, "JAVA", 401, form))


ENDS = st.tuples(
    st.integers(0, 99),
    st.sampled_from((COMMIT, COMMIT, COMMIT, COMMIT, ROLLBACK, UNKNOWN, 5)),
    st.sampled_from((0, ONEWAY_FLAG)),
    st.sampled_from(
        (
            {},
            {},
            {},
            {"producerGroup": "other"},
            {"tranStateTableOffset": "99"},
            {"commitLogOffset": "7"},
            {"commitLogOffset": "x"},
            {"fromTransactionCheck": "true"},
        )
    ),
)
PASSES = st.tuples(
    st.lists(ENDS, max_size=8), st.lists(st.tuples(st.sampled_from(MORE), st.integers(0, 2)), max_size=8)
)


async def played(
    folder: Path, emulate: int, form: int, passes: list[Any], *, together: bool
) -> tuple[list[list[object]], dict[str, dict[int, bytes]]]:
    """The answers and the files of a broker that gets ends, then sends, in one read each or one by one."""
    clock = VirtualClock()
    broker = make_broker(folder, clock, emulate=emulate)
    wire, seen, number = Wire(broker), list[list[object]](), 0
    halves: list[Command] = []
    for ends, sends in passes:
        frames: list[list[bytes]] = [[], []]
        if halves:
            for opaque, (which, how, flag, changes) in enumerate(ends):
                frames[0].append(end(halves[which % len(halves)], opaque, how, form, flag, changes))
        for more, queue_id in sends:
            frames[1].append(half(number % 256, form, more, queue_id))
            number += 1
        reads = frames if together else [[frame] for some in frames for frame in some]
        answers = [answer for read in reads for answer in FrameCutter().feed(await wire.exchange(*read))]
        halves += [answer for answer in answers if answer.opaque >= 1000 and answer.code == 0]
        replies = sorted((answer.opaque, answer.code, answer.remark or "") for answer in answers)
        seen.append([replies, *(answer.fields for answer in answers if answer.code == 0)])
        clock.advance(700)
    wire.end()
    close_broker(broker)
    return seen, stored_files(folder)


FULL = ([(number, COMMIT, 0, {}) for number in range(6)], [(MORE[0], number % 3) for number in range(6)])


@pytest.mark.parametrize("emulate", [4, 5])
@pytest.mark.parametrize("form", [JSON, ROCKETMQ])
@settings(max_examples=6, deadline=None)
@given(passes=st.lists(PASSES, min_size=1, max_size=6))
@example(passes=[FULL, FULL, FULL, FULL])
def test_nothing_tells_ends_of_a_pass_from_others(emulate: int, form: int, passes: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        left, right = (
            asyncio.run(played(Path(folder) / str(together), emulate, form, passes, together=together))
            for together in (True, False)
        )
    assert left == right


async def test_commits_of_a_pass_are_stored_together_and_behind_its_sends(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, calls = Wire(broker), list[tuple[str, int]]()
    number = 0

    def next_half() -> bytes:
        nonlocal number
        number += 1
        return half(number, JSON, {}, 0)

    replies = []
    for _ in range(4):
        answers = FrameCutter().feed(await wire.exchange(*[next_half() for _ in range(3)]))
        replies += [answer for answer in answers if answer.opaque >= 1000]
        await wire.exchange(end(replies.pop(), 1, COMMIT, JSON))
    append_all = broker.store.append_all

    def watched(messages: Any) -> Any:
        calls.append((messages[0][0].topic, len(messages)))
        return append_all(messages)

    monkeypatch.setattr(broker.store, "append_all", watched)
    frames = []
    for opaque, reply in enumerate(replies[:4]):
        frames += [next_half(), end(reply, opaque, COMMIT, JSON)]
    answers = FrameCutter().feed(await wire.exchange(*frames))
    assert calls == [("RMQ_SYS_TRANS_HALF_TOPIC", 4), ("orders", 4)]
    assert sorted(answer.opaque for answer in answers) == [0, 1, 2, 3, *range(1013, 1017)]
    assert {answer.code for answer in answers} == {0}


@pytest.mark.parametrize("is_stored", [False, True])
async def test_an_error_is_answered_and_commits_nothing_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, is_stored: bool
) -> None:
    """In the store, or behind it."""
    wire = Wire(broker)
    answers = FrameCutter().feed(await wire.exchange(*[half(number, JSON, {}, 0) for number in range(6)]))
    for reply in answers[:2]:
        await wire.exchange(end(reply, 1, COMMIT, JSON))
    before = broker.store.max_offset("orders", 0)

    def fail(*arguments: Any) -> None:
        raise RuntimeError("a mistake of ours")

    failing = (
        (broker.transactions.half_messages, "_count_stored") if is_stored else (broker.store, "append_all")
    )
    with monkeypatch.context() as patch:
        patch.setattr(*failing, fail)
        ends = [end(reply, 5, COMMIT, JSON) for reply in answers[2:5]]
        found = FrameCutter().feed(await wire.exchange(*ends))
    assert [answer.code for answer in found] == [1, 1, 1]
    assert broker.store.max_offset("orders", 0) == before + (3 if is_stored else 0)
    found = FrameCutter().feed(await wire.exchange(end(answers[5], 6, COMMIT, JSON)))
    assert [answer.code for answer in found] == [0]
