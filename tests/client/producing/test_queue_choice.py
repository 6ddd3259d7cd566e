"""Queues in turn and by selector, compared with what Java chose."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client import MessageQueue, ProducerSettings, SelectionFailed
from pocketmq.client.producing.queue_choice import (
    LatencyFaultTolerance,
    QueueTurn,
    SelectByRandom,
    invoke_selector,
    java_hash_code,
    select_by_hash,
    select_one_message_queue,
)

from client_vectors import FakeClock, plain, vectors

QUEUES = [MessageQueue("t", "b", queue_id) for queue_id in range(7)]


class TurnFrom(QueueTurn):
    """Begins where the recording program began, and continues at 100 after a restart, as it did."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self._index = start

    def restart(self) -> None:
        self._index = 100


@pytest.mark.parametrize(("asked", "recorded"), vectors("choose-queue"))
def test_queues_are_chosen_as_in_java(asked: str, recorded: str):
    case, last, start = asked.split(";")
    faults = LatencyFaultTolerance(FakeClock(), ProducerSettings())
    faults.update("a", 10, isolate=int(case) > 1, reachable=case != "3")
    faults.update("b", 20, isolate=int(case) > 2, reachable=True)
    names = ["a", "b"] if case == "3" else ["a", "b", "c"]
    queues = [MessageQueue("t", name, queue_id) for queue_id in range(2) for name in names]
    turn = TurnFrom(int(start))
    chosen = [
        select_one_message_queue(
            queues,
            turn,
            last_broker_name=last or None,
            faults=faults if case != "0" else None,
            restart=number == 4,
        )
        for number in range(6)
    ]
    assert " ".join(f"{queue.broker_name}:{queue.queue_id}" for queue in chosen) == recorded


def test_turns_are_even_and_begin_anywhere():
    turn = QueueTurn(Random(3))
    chosen = Counter(select_one_message_queue(QUEUES, turn).queue_id for _ in range(70))
    assert set(chosen.values()) == {10}
    assert {QueueTurn(Random(seed)).next() % 7 for seed in range(100)} == set(range(7))
    turn.restart()
    assert 0 <= turn.next() < 2**31


def argument(text: str) -> Any:
    kind, _, value = text.partition(";")
    match kind:
        case "String":
            return plain(value)
        case "Boolean":
            return value == "true"
        case "Double":
            return float(value)
    return int(value)


@pytest.mark.parametrize(("asked", "recorded"), vectors("hash-selector"))
def test_the_hash_selector_chooses_javas_queue(asked: str, recorded: str):
    hashed, queue_id = recorded.split(";")
    value = argument(asked)
    assert java_hash_code(value) == int(hashed)
    assert select_by_hash(QUEUES, None, value).queue_id == int(queue_id)


@pytest.mark.parametrize("value", [None, b"x", (1, 2), object(), 2**63])
def test_a_value_without_a_hash_in_java_chooses_no_queue(value: object):
    with pytest.raises(SelectionFailed):
        select_by_hash(QUEUES, None, value)


@given(st.one_of(st.text(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.booleans()))
def test_every_hash_is_a_java_int(value: object):
    assert -(2**31) <= java_hash_code(value) < 2**31


def test_random_selection_reaches_every_queue():
    select = SelectByRandom(Random(1))
    assert {select(QUEUES, None, None) for _ in range(200)} == set(QUEUES)


def test_a_failing_selector_gives_the_official_message():
    def raises(queues: Sequence[MessageQueue], message: Any, arg: Any) -> MessageQueue:
        raise KeyError(arg)

    with pytest.raises(SelectionFailed, match=r"^select message queue threw exception\.$") as caught:
        invoke_selector(raises, QUEUES, None, 7)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(SelectionFailed, match=r"^select message queue return null\.$"):
        invoke_selector(lambda queues, message, arg: None, QUEUES, None, 7)  # type: ignore[arg-type]
    with pytest.raises(SelectionFailed, match="a selector must return one of the queues, not int"):
        invoke_selector(lambda queues, message, arg: 3, QUEUES, None, 7)  # type: ignore[arg-type, return-value]

    async def waits(queues: object, message: object, arg: object) -> MessageQueue:
        return QUEUES[0]

    with pytest.raises(SelectionFailed, match="a selector must return one of the queues, not coroutine"):
        invoke_selector(waits, QUEUES, None, 7)  # type: ignore[arg-type]
    assert invoke_selector(select_by_hash, QUEUES, None, 8) == QUEUES[1]
