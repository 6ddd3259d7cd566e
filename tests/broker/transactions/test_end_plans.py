"""Half messages ended by a plan and from their decoded record: the same answers and the same stored bytes."""

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pocketmq.broker.storing import text_shapes
from pocketmq.broker.transactions import end_plans
from pocketmq.protocol.requests.send import SendMessage
from pocketmq.store import VirtualClock

from broker_fakes import Asked, FakeLoop, MakeBroker, ask, close_broker, make_broker
from broker_fakes import send as run
from stored_files import stored_files
from transaction_sends import COMMIT, ROLLBACK, ending, records, send_half

ID = "7F000001000000000000000000000000"
"""Each message of a test has this id with its own number at the end."""


class Form(msgspec.Struct, frozen=True):
    """What several half messages have in common. `{id}`, `{key}` and `{number}` differ from message to message."""

    properties: tuple[tuple[str, str], ...]
    ids: str = ID[:-4] + "{number:04d}"
    sys_flag: int = 4

    def text(self, number: int) -> str:
        unique_id = self.ids.format(number=number)
        return "".join(
            f"{name}\1{value.format(id=unique_id, key=f'key-{number}', number=number)}\2"
            for name, value in self.properties
        )


PREPARED = (("TRAN_MSG", "true"), ("PGROUP", "pg"), ("UNIQ_KEY", "{id}"), ("WAIT", "true"))
VALUES = st.sampled_from(
    ("a", "b c", "{id}", "{key}", "{key} {id}", "{number}", "x{id}", "é", "\1", "", "GgHh", "T", "true", "0")
)
NAMES = st.sampled_from(
    (
        "TAGS",
        "KEYS",
        "colour",
        "MY_UNIQ_KEY",
        "MYKEYS",
        "UNIQ_KEY",
        "PGROUP",
        "TRANSACTION_CHECK_TIMES",
        ID[:28],
        "DELAY",
        "CHECK_IMMUNITY_TIME_IN_SECONDS",
        "REAL_TOPIC",
        "WAIT",
        "__CRC32#",
        "TIMER_DELAY_SEC",
        "MSG_REGION",
    )
)
FORMS = st.builds(
    Form,
    st.lists(st.tuples(NAMES, VALUES), max_size=4).flatmap(
        lambda more: st.permutations((*PREPARED, *more)).map(tuple)
    ),
    st.sampled_from(
        (ID[:-4] + "{number:04d}", ID[:-4] + "{number:04x}", "{number}", "é" * 16, ID[:-5] + "\1{number:04d}")
    ),
    st.sampled_from((0, 4, 4 | 1, 4 | 0x10)),
)
ENDS = st.tuples(
    st.sampled_from((COMMIT, COMMIT, COMMIT, ROLLBACK, 0, 5)),
    st.sampled_from(
        (
            {},
            {},
            {},
            {},
            {"producer_group": "other"},
            {"tran_state_table_offset": 99},
            {"commit_log_offset": 7},
        )
    ),
)
STEPS = st.lists(st.tuples(st.integers(0, 1), ENDS), min_size=1, max_size=8)


async def played(
    folder: Path,
    emulate: int,
    forms: list[Form],
    steps: list[tuple[int, tuple[int, dict[str, object]]]],
    *,
    plans: bool,
) -> tuple[list[Asked | str], dict[str, dict[int, bytes]], int]:
    """Answers and files of a broker that gets these half messages and their ends; and how many ends had a plan."""
    clock = VirtualClock()
    broker = make_broker(folder, clock, loop=FakeLoop(clock), emulate=emulate)
    find, found = broker.transactions.half_messages.plans.find, 0

    def watched(record: memoryview) -> end_plans.PlannedHalf | None:
        nonlocal found
        half = find(record) if plans else None
        found += half is not None
        return half

    broker.transactions.half_messages.plans.find = watched  # type: ignore[method-assign]
    answers: list[Asked | str] = []
    for number, (form, (how, changes)) in enumerate(steps):
        request = SendMessage(
            producer_group="pg",
            topic="T",
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=form,
            sys_flag=forms[form].sys_flag,
            born_timestamp=clock.now_ms(),
            flag=number,
            properties=forms[form].text(number),
        )
        half = await ask(broker, request, b"body" * (number + 1))
        answers.append(half)
        if half.code == 0:
            result = await run(broker, ending(half, how, **changes))
            answers.append(repr(result))
        clock.advance(300)
    close_broker(broker)
    return answers, stored_files(folder), found


@pytest.mark.parametrize("emulate", [5, 4])
@settings(max_examples=15, deadline=None)
@given(forms=st.tuples(FORMS, FORMS).map(list), steps=STEPS)
@example(
    forms=[Form(PREPARED), Form((*PREPARED, ("KEYS", "{key}")))],
    steps=[(n % 2, (COMMIT, {})) for n in range(8)],
)
@example(
    forms=[Form(PREPARED), Form((*PREPARED, ("{id}", "x")))], steps=[(n % 2, (COMMIT, {})) for n in range(8)]
)
async def test_plan_and_decoded_record_give_the_same_bytes(
    emulate: int, forms: list[Form], steps: list[tuple[int, tuple[int, dict[str, object]]]]
) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        answers, files, _ = await played(Path(one), emulate, forms, steps, plans=True)
        wanted_answers, wanted_files, _ = await played(Path(two), emulate, forms, steps, plans=False)
    assert answers == wanted_answers
    assert files == wanted_files


@pytest.mark.parametrize("emulate", [5, 4])
@pytest.mark.parametrize("more", [(), (("KEYS", "{key}"), ("TAGS", "a"))])
async def test_alike_half_messages_have_a_plan_from_the_second_on(
    tmp_path: Path, emulate: int, more: tuple[tuple[str, str], ...]
) -> None:
    steps = [(0, (COMMIT, {})) for _ in range(5)]
    _, _, found = await played(tmp_path, emulate, [Form((*PREPARED, *more))], steps, plans=True)
    assert found == 4


async def test_half_messages_that_are_never_alike_fill_a_memory_of_bounded_size(
    broker_maker: MakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_shapes, "MAX_SHAPES", 4)
    broker = broker_maker()
    plans = broker.transactions.half_messages.plans
    for number in range(30):
        await ask(broker, ending(await send_half(broker, order=str(number)), COMMIT))
        assert len(plans.shapes) <= 4
    assert len(records(broker, "T", 2)) == 30
