"""The sends of a pass. Three brokers get the same bytes: one handles them in passes, one decodes each request and
handles it alone, one does without the native core. Nothing may tell them apart.

Compared are the log, the queues, the index, the replies and the statistics.
"""

import asyncio
from collections.abc import Callable, Hashable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pocketmq.broker.broker import Broker
from pocketmq.broker.sending.decision import Decision, Decisions
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.message.unique_id import UniqueIdMaker
from pocketmq.protocol.requests.admin import UpdateBrokerConfig
from pocketmq.protocol.wire.command import ONEWAY_FLAG, ROCKETMQ
from pocketmq.protocol.wire.frame import FrameCutter
from pocketmq.store import VirtualClock

from broker_fakes import MakeBroker, WallLoop, ask, close_broker, make_broker
from plain_core import in_plain_python
from send_frames import IDS, Decoded, a_batch, a_send, statistics_of
from stored_files import stored_files
from wire_without_socket import Wire


def a_small_batch(*, opaque: int) -> bytes:
    return a_batch(number=opaque, bodies=[b"a", b"b"], opaque=opaque)


@pytest.mark.parametrize(("emulate", "sends"), [(4, a_send), (5, a_send), (5, a_small_batch)])
async def test_answers_wait_for_the_disk_and_not_forever(
    tmp_path: Path, emulate: int, sends: Callable[..., bytes]
) -> None:
    settings = {"flush_disk_type": "SYNC_FLUSH", "sync_flush_timeout": 4000}
    seen = []
    for in_passes in (True, False):
        broker = make_broker(tmp_path / str(in_passes), VirtualClock(), emulate=emulate, store=settings)
        broker.cluster.durable_log.disk_waiters._loop = loop = WallLoop()  # type: ignore[assignment]
        wire, answers = Wire(broker, in_passes=in_passes), []
        for number in range(3):
            await wire.exchange(sends(opaque=number))
            broker.store.flush_pass()
            answers.append(await wire.exchange())
            assert answers[-1] != b""
        held = await wire.exchange(sends(opaque=7), sends(opaque=8))
        assert (held, broker.sending.waiting_sends) == (b"", 2)
        loop.run_for(4)
        late = await wire.exchange()
        assert [(one.opaque, one.code) for one in FrameCutter().feed(late)] == [(7, 10), (8, 10)]
        assert broker.sending.waiting_sends == 0
        seen.append([*answers, late])
        close_broker(broker)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("in_passes", [True, False])
async def test_no_more_sends_wait_for_the_disk_than_allowed(
    broker_maker: MakeBroker, in_passes: bool
) -> None:
    broker = broker_maker(store={"flush_disk_type": "SYNC_FLUSH"}, send_thread_pool_queue_capacity=3)
    wire = Wire(broker, in_passes=in_passes)
    for number in range(3):
        await wire.exchange(a_send(opaque=number))
        broker.store.flush_pass()
        await wire.exchange()
    refused = FrameCutter().feed(await wire.exchange(*[a_send(opaque=number) for number in range(5)]))
    assert [(one.opaque, one.code) for one in refused] == [(3, 2), (4, 2)]
    busy = "[OVERLOAD]system busy, start flow control for a while"
    assert {one.remark for one in refused} == {busy}
    broker.store.flush_pass()
    stored = FrameCutter().feed(await wire.exchange())
    assert [(one.opaque, one.code) for one in stored] == [(0, 0), (1, 0), (2, 0)]


async def test_a_refused_send_between_others_is_answered_with_its_reason(broker: Broker) -> None:
    wire = Wire(broker)
    queues = ["0", "x", "0", "9", "0", "0"]
    written = await wire.exchange(*[a_send(opaque=number, e=text) for number, text in enumerate(queues)])
    answers = FrameCutter().feed(written)
    assert [answer.opaque for answer in answers] == list(range(6))
    assert [answer.code for answer in answers] == [0, 1, 0, 29, 0, 0]
    assert "e is 'x'" in (answers[1].remark or "")


async def test_a_refused_batch_with_a_binary_header_does_not_spoil_those_after_it(
    broker_maker: MakeBroker,
) -> None:
    wire = Wire(broker_maker(emulate=5))
    text = encode_properties_text({"UNIQ_KEY": IDS[0].format(1), "WAIT": "true"}).encode()
    whole = encode_batch([BatchElement(0, b"x", text)])
    written = b"".join(
        [
            await wire.exchange(
                a_send(
                    code=320,
                    m="true",
                    form=ROCKETMQ,
                    opaque=number,
                    body=body,
                    pairs={"UNIQ_KEY": IDS[0].format(number)},
                )
            )
            for number, body in enumerate([whole[:-1], whole[:-1], whole[:-1], whole, whole])
        ]
    )
    assert [answer.code for answer in FrameCutter().feed(written)] == [1, 1, 1, 0, 0]


async def test_an_error_in_the_store_is_answered_and_the_connection_goes_on(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = Wire(broker)
    await wire.exchange(a_send(), a_send(), a_send())

    def fail(*arguments: Any) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(broker.store, "append_all", fail)
    (answer,) = FrameCutter().feed(await wire.exchange(a_send(opaque=9)))
    assert (answer.opaque, answer.code, answer.remark) == (9, 1, "RuntimeError: a mistake of ours")
    monkeypatch.undo()
    (answer,) = FrameCutter().feed(await wire.exchange(a_send(opaque=10)))
    assert (answer.opaque, answer.code) == (10, 0)


async def test_an_error_behind_the_store_stores_nothing_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first send was refused and the others handled anew: eight sends left 36 records."""
    wire = Wire(broker)
    await wire.exchange(a_send(), a_send(), a_send())
    before = broker.store.statistics.messages

    def fail(*arguments: Any) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(broker.statistics, "count_put", fail)
    answers = FrameCutter().feed(await wire.exchange(*[a_send(opaque=opaque) for opaque in range(8)]))
    assert [(answer.opaque, answer.code) for answer in answers] == [(opaque, 1) for opaque in range(8)]
    assert broker.store.statistics.messages == before + 8


async def test_a_value_that_breaks_the_header_closes_the_connection_after_the_answers_before_it(
    broker: Broker,
) -> None:
    wire = Wire(broker)
    await wire.exchange(a_send(), a_send())
    broken = a_send(opaque=2).replace(IDS[0].format(1).encode(), b'"' * 32)
    answers = FrameCutter().feed(await wire.exchange(a_send(opaque=1), broken, a_send(opaque=3)))
    assert [answer.opaque for answer in answers] == [1]
    assert wire.is_closed


async def test_messages_with_properties_of_their_own_share_a_decision(broker: Broker) -> None:
    """Real producers put an order number or a trace context into each message."""
    wire = Wire(broker)
    frames = [
        a_send(
            opaque=number, e=str(number % 4), pairs={"KEYS": f"k{number}", "traceparent": f"00-{number:032x}"}
        )
        for number in range(40)
    ]
    answers = FrameCutter().feed(await wire.exchange(*frames))
    assert [answer.code for answer in answers] == [0] * 40
    assert len(broker.sends._decisions) == 1
    assert [broker.store.max_offset("orders", queue_id) for queue_id in range(4)] == [10] * 4


async def test_no_more_decisions_are_kept_than_allowed(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker.sends._decisions, "_max_kinds", 8)
    wire = Wire(broker)
    for number in range(100):
        await wire.exchange(a_send(a=f"group{number}"))
        assert len(broker.sends._decisions) <= 8


async def test_a_watcher_sees_every_send_with_its_answer(broker: Broker) -> None:
    wire, seen = Wire(broker), Decoded()
    wire.server.add_watcher(seen)
    frames = [a_send(opaque=number, flag=ONEWAY_FLAG if number == 2 else 0) for number in range(5)]
    answers = await wire.exchange(*frames)
    assert (seen.replies, seen.raw_count, seen.count) == (answers, 4, 1)
    assert seen.requests == b"".join(frames[:2] + frames[3:])


SHAPES: list[dict[str, Any]] = [
    {},
    {"form": ROCKETMQ},
    {"code": 10},
    {"pairs": {"KEYS": "k1", "TAGS": "A"}},
    {"form": ROCKETMQ, "pairs": {"KEYS": "k1", "TAGS": "A", "own": "ä"}},
    {"form": ROCKETMQ, "pairs": {"WAIT": "false"}, "f": "1", "h": "3"},
    {"pairs": {"DELAY": "2"}},
    {"pairs": {"INNER_NUM": "2"}},
    {"b": "other1"},
    {"b": "%RETRY%g", "pairs": {"TAGS": "B"}},
    {"flag": ONEWAY_FLAG},
    {"d": "1", "j": "2", "k": "true", "n": "broker-a"},
    {"f": "4", "pairs": {"TRAN_MSG": "true", "PGROUP": "group"}},
    {"form": ROCKETMQ, "f": "5", "h": "7", "pairs": {"TRAN_MSG": "TRUE", "PGROUP": "group", "TAGS": "A"}},
    {"code": 10, "flag": ONEWAY_FLAG, "pairs": {"TRAN_MSG": "true", "KEYS": "k1"}},
    {"f": "4", "pairs": {"TRAN_MSG": "true", "PGROUP": "group", "TIMER_DELAY_SEC": "5"}},
    {"form": ROCKETMQ, "pairs": {"TIMER_DELAY_SEC": "10"}},
    {"pairs": {"TIMER_DELAY_MS": "1500", "TAGS": "A", "own": "ä"}},
    {"form": ROCKETMQ, "flag": ONEWAY_FLAG, "pairs": {"TIMER_DELIVER_MS": "1700000001500"}},
    {"form": ROCKETMQ, "pairs": {"TIMER_DELAY_SEC": "7"}},
    {"form": ROCKETMQ, "pairs": {"TIMER_DELAY_SEC": "0"}},
    {"form": ROCKETMQ, "pairs": {"TIMER_DELAY_SEC": "x"}},
    {"pairs": {"TIMER_DELIVER_MS": "1700000001500", "TIMER_DELAY_MS": "700"}},
    {"pairs": {"TIMER_DELIVER_MS": "1700000001500", "PRIORITY": "1"}},
    {"pairs": {"TIMER_DELAY_SEC": "259201"}},
    {"pairs": {"TIMER_DELAY_SEC": "5", "TIMER_DEL_UNIQKEY": "orders+" + IDS[0].format(1)}},
    {"f": "8", "pairs": {"TIMER_DELAY_SEC": "5"}},
    {"code": 320, "m": "true"},
    {"code": 320, "m": "true", "form": ROCKETMQ, "pairs": {"WAIT": "true", "KEYS": "k1"}, "f": "1"},
    {"code": 320, "m": "true", "flag": ONEWAY_FLAG},
    {"code": 320, "pairs": {"WAIT": "false"}, "j": "2"},
    {"m": "true", "pairs": {"TAGS": "A"}},
    {"code": 320, "m": "true", "pairs": {"DELAY": "2"}},
    {"code": 320, "m": "true", "f": "4"},
    {"code": 320, "m": "true", "f": "8", "b": "other1"},
    {"pairs": {"DELAY": "99"}},
    {"pairs": {"DELAY": "0"}},
    {"pairs": {"DELAY": "x"}},
    {"pairs": {"DELAY": "2", "WAIT": "true"}},
    {"pairs": {"DELAY": "2", "WAIT": "false"}},
    {"pairs": {"DELAY": "1", "TIMER_DELAY_SEC": "5"}},
    {"f": "4", "pairs": {"TRAN_MSG": "false", "PGROUP": "group"}},
    {"f": "4", "pairs": {"TRAN_MSG": "True", "PGROUP": "group"}},
    {"f": "4", "pairs": {"TRAN_MSG": "true", "DELAY": "2", "PGROUP": "group"}},
]
"""What does not change from one send of a producer to the next."""
TEXTS = ["0", "1", "3", "7", "12", "03", "+1", "-1", " 2", "٣", "", "x", "1_0", "99999999999"]
KEY_TEXTS = ["k2", "k 3", 'k"', "k\\", "kü", "k%d", "k\x01y", "k\x02TAGS\x01B", " ", "kkkkk"]
ID_TEXTS = [
    IDS[0].format(9),
    IDS[1].format(9),
    "0" * 31,
    "0" * 33,
    "é" * 32,
    '"' * 32,
    "\x02" * 32,
    "%d" * 16,
    " " * 32,
]

sends = st.fixed_dictionaries(
    {
        "shape": st.sampled_from(range(len(SHAPES))),
        "opaque": st.sampled_from([0, 1, 9, 10, 123, 2**31 - 1, -5]),
        "e": st.one_of(st.sampled_from(["0", "1", "2"]), st.sampled_from(TEXTS)),
        "g": st.one_of(st.sampled_from(["1700000000001", "1700000000002"]), st.sampled_from(TEXTS)),
        "id": st.one_of(st.integers(0, 255).map(IDS[0].format), st.sampled_from(ID_TEXTS)),
        "keys": st.one_of(st.sampled_from(["k1", "k2"]), st.sampled_from(KEY_TEXTS)),
        "body": st.binary(max_size=40),
        "batch": st.lists(
            st.tuples(st.binary(max_size=5) | st.just(b"abc"), st.integers(0, 255)), max_size=5
        ),
        "odd": st.sampled_from(["", "", "", "tags", "cut", "id"]),
    }
)
changes = st.sampled_from(
    ["fewer queues", "many tags", "deleted", "trace", "closed", "new topic", "a second"]
)


async def changed(broker: Broker, clock: VirtualClock, change: str) -> None:
    match change:
        case "fewer queues":
            broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=2, write_queue_nums=1))
        case "many tags":
            broker.topics.update(TopicConfig(topic_name="orders", topic_filter_type="MULTI_TAG"))
        case "new topic":
            broker.topics.update(TopicConfig(topic_name="other1", read_queue_nums=8, write_queue_nums=8))
        case "deleted":
            broker.topics.delete("orders")
            broker.store.delete_topic_queues("orders")
        case "trace" | "closed":
            setting = b"traceOn=false\n" if change == "trace" else b"brokerPermission=4\n"
            assert (await ask(broker, UpdateBrokerConfig(), setting)).code == 0
        case "a second":
            clock.advance(1000)


def frame_of(values: dict[str, Any]) -> bytes:
    shape = SHAPES[values["shape"]]
    pairs = {**shape.get("pairs", {}), "UNIQ_KEY": values["id"]}
    if "KEYS" in pairs:
        pairs["KEYS"] = values["keys"]
    rest = {name: value for name, value in shape.items() if name != "pairs"}
    body = batch_body(values) if shape.get("code") == 320 or "m" in shape else values["body"]
    return a_send(
        **{**rest, "opaque": values["opaque"], "body": body, "e": values["e"], "g": values["g"]},
        pairs=pairs,
    )


def batch_body(values: dict[str, Any]) -> bytes:
    """A batch of messages that are alike, or one of which is odd, or that is cut off."""
    elements = []
    for number, (body, unique_id) in enumerate(values["batch"]):
        pairs = {"UNIQ_KEY": IDS[0].format(unique_id), "WAIT": "true"}
        if number == 1 and values["odd"] == "tags":
            pairs["TAGS"] = "B"
        elif number == 1 and values["odd"] == "id":
            pairs["UNIQ_KEY"] = values["id"]
        elements.append(BatchElement(0, body, encode_properties_text(pairs).encode()))
    return encode_batch(elements)[: -1 if values["odd"] == "cut" else None]


class Forgotten(Decisions):
    """None is kept: each send is decided for itself."""

    def keep(self, kind: Hashable, decision: Decision) -> None:
        pass


async def played(
    folder: str, actions: list[Any], *, emulate: int, flush: str, in_passes: bool
) -> tuple[list[bytes], dict[str, dict[int, bytes]], list[object], bool]:
    clock = VirtualClock()
    broker = make_broker(Path(folder), clock, emulate=emulate, store={"flush_disk_type": flush})
    broker.sending.unique_ids = UniqueIdMaker(b"\x7f\0\0\1", 1, 1, clock.now_ms)
    broker.delayed.timer.start()
    if not in_passes:
        broker.sends._decisions = Forgotten()
    wire, written = Wire(broker, in_passes=in_passes), []
    for action in actions:
        broker.state.random.seed(1)  # a queue of -1 lets the broker choose
        if isinstance(action, str):
            await changed(broker, clock, action)
        else:
            written.append(await wire.exchange(*map(frame_of, action)))
            if flush == "SYNC_FLUSH":
                broker.store.flush_pass()
                written.append(await wire.exchange())
    wire.end()
    statistics = statistics_of(broker)
    close_broker(broker)
    return written, stored_files(Path(folder)), statistics, wire.is_closed


games = st.tuples(
    st.sampled_from([4, 5]),
    st.sampled_from(["ASYNC_FLUSH", "SYNC_FLUSH"]),
    st.lists(sends, min_size=1, max_size=3),
    st.lists(st.one_of(st.lists(sends, min_size=1, max_size=20), changes), max_size=4),
)


def plays_the_same(emulate: int, flush: str, first: list[dict[str, Any]], actions: list[Any]) -> None:
    known = [{**values, "e": "0", "g": "1700000000000", "opaque": 5} for values in first for _ in range(3)]
    with TemporaryDirectory() as folder:

        def played_by(name: str, *, in_passes: bool) -> object:
            game = played(
                f"{folder}/{name}", [known, *actions], emulate=emulate, flush=flush, in_passes=in_passes
            )
            return asyncio.run(game)

        in_passes = played_by("passes", in_passes=True)
        assert in_passes == played_by("alone", in_passes=False)
        with in_plain_python():
            assert in_passes == played_by("plain", in_passes=True)


BATCH_WITHOUT_ID = {
    "shape": 22,
    "opaque": 0,
    "e": "0",
    "g": "1700000000001",
    "id": "\x02" * 32,
    "keys": "k1",
    "body": b"",
    "batch": [(b"abc", 0)],
    "odd": "",
}


OF_FEW_KINDS = [
    {**BATCH_WITHOUT_ID, "shape": shape, "body": b"a", "e": str(number % 3), "id": IDS[0].format(number)}
    for number, shape in enumerate([*range(len(SHAPES)), *range(len(SHAPES)), *range(-9, 0), *range(-9, 0)])
]
"""Several of each kind, some of which differ in a value that decides where they are stored."""


@settings(max_examples=6, deadline=None)
@given(games)
@example((5, "ASYNC_FLUSH", [], [sorted(OF_FEW_KINDS, key=lambda values: values["shape"]), OF_FEW_KINDS]))
@example((4, "ASYNC_FLUSH", [], [sorted(OF_FEW_KINDS, key=lambda values: values["shape"]), OF_FEW_KINDS]))
@example((5, "ASYNC_FLUSH", [BATCH_WITHOUT_ID], []))
@example((4, "ASYNC_FLUSH", [BATCH_WITHOUT_ID], []))
def test_nothing_tells_sends_of_a_pass_from_others(
    game: tuple[int, str, list[dict[str, Any]], list[Any]],
) -> None:
    plays_the_same(*game)


@pytest.mark.soak
@pytest.mark.timeout(600)
@settings(max_examples=200, deadline=None)
@given(games)
def test_nothing_tells_sends_of_a_pass_from_others_in_many_games(
    game: tuple[int, str, list[dict[str, Any]], list[Any]],
) -> None:
    plays_the_same(*game)
