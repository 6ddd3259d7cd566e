"""Ends of transactions of a pass: brokers get the same bytes, in passes, in reads of one frame, without the core."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pocketmq.broker.broker import Broker
from pocketmq.protocol.message.topics import HALF_TOPIC, OP_HALF_TOPIC
from pocketmq.protocol.wire.command import JSON, ONEWAY_FLAG, ROCKETMQ, Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.store import PutStatus, VirtualClock

from broker_fakes import MakeBroker, close_broker, make_broker, records
from plain_core import in_plain_python
from send_frames import Decoded, a_send
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
            {"commitOrRollback": "x"},
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


REFUSED = ([(0, COMMIT, 0, {"commitOrRollback": "x"})], [])
FULL = ([(number, COMMIT, 0, {}) for number in range(6)], [(MORE[0], number % 3) for number in range(6)])


@pytest.mark.parametrize("emulate", [4, 5])
@pytest.mark.parametrize("form", [JSON, ROCKETMQ])
@settings(max_examples=6, deadline=None)
@given(passes=st.lists(PASSES, min_size=1, max_size=6))
@example(passes=[FULL, FULL, REFUSED, FULL, FULL])
def test_nothing_tells_ends_of_a_pass_from_others(emulate: int, form: int, passes: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        together, alone = (
            asyncio.run(played(Path(folder) / str(together), emulate, form, passes, together=together))
            for together in (True, False)
        )
        with in_plain_python():
            plain = asyncio.run(played(Path(folder) / "plain", emulate, form, passes, together=True))
    assert together == alone
    assert together == plain


@pytest.mark.parametrize("form", [JSON, ROCKETMQ])
async def test_ends_in_either_form_are_answered_in_the_form_of_their_line(broker4: Broker, form: int) -> None:
    """In 4.9 that of the request."""
    wire = Wire(broker4)
    halves = FrameCutter().feed(await wire.exchange(*[half(number, form, {}, 0) for number in range(4)]))
    for how in (COMMIT, ROLLBACK):
        pair = halves.pop(), halves.pop()
        ends = [end(one, opaque, how, form) for opaque, one in enumerate(pair)]
        answers = FrameCutter().feed(await wire.exchange(*ends))
        assert [(one.opaque, one.code, one.header_type) for one in answers] == [(0, 0, form), (1, 0, form)]


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

    failing = (broker.transactions.ends, "_count_stored") if is_stored else (broker.store, "append_all")
    with monkeypatch.context() as patch:
        patch.setattr(*failing, fail)
        ends = [end(reply, 5, COMMIT, JSON) for reply in answers[2:5]]
        found = FrameCutter().feed(await wire.exchange(*ends))
    assert [answer.code for answer in found] == [1, 1, 1]
    assert broker.store.max_offset("orders", 0) == before + (3 if is_stored else 0)
    found = FrameCutter().feed(await wire.exchange(end(answers[5], 6, COMMIT, JSON)))
    assert [answer.code for answer in found] == [0]


def refuse_message(broker: Broker, patch: pytest.MonkeyPatch, number: int) -> None:
    """The store refuses the message with this number of the next append."""
    append_all = broker.store.append_all

    def append_some(messages: Any) -> Any:
        patch.undo()
        placed = append_all(messages[:number])
        placed.refusal = PutStatus.CREATE_MAPPED_FILE_FAILED
        return placed

    patch.setattr(broker.store, "append_all", append_some)


async def stored_halves(wire: Wire, count: int) -> list[Command]:
    """The answers to so many half messages; one before them has no position to end it by."""
    frames = [half(number, JSON, {}, 0) for number in range(count + 1)]
    return FrameCutter().feed(await wire.exchange(*frames))[1:]


@pytest.mark.parametrize("emulate", [4, 5])
async def test_those_behind_a_refused_commit_are_stored(
    broker_maker: MakeBroker, monkeypatch: pytest.MonkeyPatch, emulate: int
) -> None:
    broker = broker_maker(emulate=emulate)
    wire = Wire(broker)
    halves = await stored_halves(wire, 3)
    refuse_message(broker, monkeypatch, 1 if emulate == 5 else 2)
    ends = [end(reply, opaque, COMMIT, JSON) for opaque, reply in enumerate(halves)]
    answers = FrameCutter().feed(await wire.exchange(*ends))
    assert [(answer.opaque, answer.code, answer.remark) for answer in answers] == [
        (0, 0, None),
        (1, 1, "Create mapped file failed."),
        (2, 0, None),
    ]
    assert [len(record.body) for record in records(broker, "orders")] == [2, 4]


async def test_4_9_writes_an_op_message_later_that_the_store_refused(
    broker4: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = Wire(broker4)
    halves = await stored_halves(wire, 3)
    refuse_message(broker4, monkeypatch, 1)
    answers = FrameCutter().feed(await wire.exchange(*[end(reply, 7, COMMIT, JSON) for reply in halves]))
    assert [answer.code for answer in answers] == [0, 0, 0]
    assert len(records(broker4, "orders")) == 3
    assert records(broker4, OP_HALF_TOPIC) == []
    broker4.transactions.half_messages.stop()
    assert [bytes(op.body) for op in records(broker4, OP_HALF_TOPIC)] == [b"1", b"2", b"3"]


async def test_4_9_stores_a_pass_in_one_append(broker4: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    wire, calls = Wire(broker4), list[list[str]]()
    halves = await stored_halves(wire, 3)
    append_all = broker4.store.append_all

    def watched(messages: Any) -> Any:
        calls.append([message[0].topic for message in messages])
        return append_all(messages)

    monkeypatch.setattr(broker4.store, "append_all", watched)
    hows = (COMMIT, ROLLBACK, COMMIT)
    await wire.exchange(*[end(reply, 7, how, JSON) for reply, how in zip(halves, hows, strict=True)])
    assert calls == [["orders", OP_HALF_TOPIC, OP_HALF_TOPIC, "orders", OP_HALF_TOPIC]]


async def test_watchers_see_ends_decoded_and_sends_beside_them_as_bytes(broker: Broker) -> None:
    wire, watcher = Wire(broker), Decoded()
    halves = await stored_halves(wire, 3)
    wire.server.add_watcher(watcher)
    wire.connection.watch = wire.server.watch
    frames = [half(9, JSON, {}, 0), *[end(reply, 7, COMMIT, JSON) for reply in halves]]
    answers = FrameCutter().feed(await wire.exchange(*frames))
    assert [answer.code for answer in answers] == [0] * 4
    assert (watcher.count, watcher.raw_count) == (3, 1)
    assert len(records(broker, HALF_TOPIC)) == 5
    assert len(records(broker, "orders")) == 3
