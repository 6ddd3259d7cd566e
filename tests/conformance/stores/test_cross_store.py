"""PocketMQ and the official brokers open one store in turn, after a clean stop or a kill, and nothing is lost.

Each server shows what the one before showed: records byte by byte, queue offsets, consumer offsets, topics, groups,
messages by key and by position, and delayed messages. All tests share one run of the chains, side by side; see
`store_chain.py`. POCKETMQ_INTEROP_ALL=1 adds those of CHAINS_ON_DEMAND.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from conformance.on_demand import chosen
from conformance.stores.store_chain import BULK, GROUP, LONGEST_LEVEL, Chain, Step, Turn
from conformance.stores.store_snapshot import SCHEDULE_TOPIC


def turns(text: str) -> tuple[Turn, ...]:
    """Who opens the store, and how it ends."""
    return tuple(Turn(*turn.split()) for turn in text.split(", "))


CHAINS = {
    "line_5": turns(
        "ours-5.5 stop, official-5.5 kill, ours-5.5 kill, official-4.9 stop, ours-5.5 stop, "
        "official-4.9 kill, ours-5.5 stop"
    ),
    "line_4": turns(
        "ours-4.9 kill, official-5.5 stop, ours-4.9 stop, official-4.9 kill, ours-4.9 kill, "
        "official-4.9 stop, ours-4.9 stop"
    ),
}
CHAINS_ON_DEMAND = {
    "line_5_more": turns("official-5.5 stop, ours-5.5 kill, official-5.5 stop, ours-5.5 stop"),
    "line_4_more": turns("official-4.9 stop, ours-4.9 stop, official-5.5 kill, ours-4.9 stop"),
}
CHOSEN = dict(chosen(CHAINS.items(), CHAINS_ON_DEMAND.items()))
CHAIN_SECONDS = 400
STEPS = [(name, number) for name, turns in CHOSEN.items() for number in range(len(turns))]
OPENINGS = [(name, number) for name, number in STEPS if number]

pytestmark = pytest.mark.timeout(CHAIN_SECONDS + 60)


def described(case: tuple[str, int]) -> str:
    name, number = case
    turns = CHOSEN[name]
    if number == 0:
        return f"{name}-0-{turns[0].side}"
    verb = "stopped" if turns[number - 1].end == "stop" else "killed"
    return f"{name}-{number}-{turns[number].side}-after-{turns[number - 1].side}-{verb}"


class Runs:
    """All chains at once; the steps of one as soon as that chain is done."""

    def __init__(self, chains: dict[str, Chain], pool: ThreadPoolExecutor) -> None:
        self._chains = chains
        self._runs: dict[str, Future[None]] = {name: pool.submit(chain.run) for name, chain in chains.items()}

    def step(self, case: tuple[str, int]) -> Step:
        name, number = case
        failure = self._runs[name].exception(CHAIN_SECONDS)
        steps = self._chains[name].steps
        if number >= len(steps):
            assert failure is not None
            raise failure
        return steps[number]


@pytest.fixture(scope="module")
def runs(peers: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    chains = {
        name: Chain(turns, tmp_path_factory.mktemp(name), "5.5" if name.startswith("line_5") else "4.9")
        for name, turns in CHOSEN.items()
    }
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield Runs(chains, pool)


@pytest.mark.parametrize("case", OPENINGS, ids=described)
def test_a_server_shows_what_the_one_before_did(runs: Runs, case: tuple[str, int]) -> None:
    """Records, offsets, topics and groups, what is found by key and by position: field by field."""
    name, number = case
    before, after = runs.step((name, number - 1)).closed, runs.step(case).opened
    assert before is not None
    assert after == before


@pytest.mark.parametrize("case", OPENINGS, ids=described)
def test_messages_that_waited_are_delivered_once(runs: Runs, case: tuple[str, int]) -> None:
    _, number = case
    assert Counter(runs.step(case).later) == {f"s{one}-later".encode(): 1 for one in range(number)}


@pytest.mark.parametrize("case", STEPS, ids=described)
def test_every_message_is_at_the_offset_the_producer_was_answered(runs: Runs, case: tuple[str, int]) -> None:
    """In this step and all before."""
    name, number = case
    closed = runs.step(case).closed
    assert closed is not None
    answered: dict[tuple[str, int, int], str] = {}
    for earlier in range(number + 1):
        for topic, queue_id, offset, _, _, body in runs.step((name, earlier)).sent:
            if topic in ("Plain", "Keyed"):
                answered[topic, int(queue_id), int(offset)] = body
    stored = {
        (topic, queue_id, message.offset): message.body.decode()
        for (topic, queue_id), messages in closed.messages.items()
        if topic in ("Plain", "Keyed")
        for message in messages
    }
    assert stored == answered
    assert len(answered) == (number + 1) * (BULK + 6)
    batches = [m.body.decode() for (topic, _), ms in closed.messages.items() if topic == "Batch" for m in ms]
    expected = {f"s{one}-batch-{element}": 1 for one in range(number + 1) for element in range(4)}
    assert Counter(batches) == expected
    assert closed.queues[SCHEDULE_TOPIC, LONGEST_LEVEL - 1].max_offset == number + 1


@pytest.mark.parametrize("case", STEPS, ids=described)
def test_every_key_finds_its_messages(runs: Runs, case: tuple[str, int]) -> None:
    _, number = case
    closed = runs.step(case).closed
    assert closed is not None
    positions: dict[str, set[int]] = {}
    for (topic, _), messages in closed.messages.items():
        if topic == "Keyed":
            for message in messages:
                for key in message.properties["KEYS"].split():
                    positions.setdefault(f"Keyed#{key}", set()).add(message.position)
    assert len(positions["Keyed#shared"]) == 6 * (number + 1)
    found = {key: set(closed.by_key[key]) for key in positions}
    assert found == positions
    unique = {
        f"{topic}#{message.properties['UNIQ_KEY']}": [message.position]
        for (topic, _), messages in closed.messages.items()
        if topic
        in ("Plain", "Keyed")  # a 4.9 broker gives all messages of a batch the batch's id besides their own
        for message in messages[::10]
    }
    assert {key: closed.by_unique_key[key] for key in unique} == unique


@pytest.mark.parametrize("case", STEPS, ids=described)
def test_group_continues_at_its_offset(runs: Runs, case: tuple[str, int]) -> None:
    """It gets each new message once, and each message it sent back once more."""
    _, number = case
    step = runs.step(case)
    got = Counter((body, reconsumed) for _, _, _, reconsumed, body in step.got)
    new = {(f"s{number}-keyed-{one}", "0"): 1 for one in range(6)}
    assert got == {**new, (f"s{number}-keyed-0", "1"): 1}
    closed = step.closed
    assert closed is not None
    for (topic, queue_id), queue in closed.queues.items():
        if topic in ("Keyed", f"%RETRY%{GROUP}") and queue.max_offset:
            assert closed.offsets[f"{topic}@{GROUP}"][str(queue_id)] == queue.max_offset


@pytest.mark.parametrize("name", CHAINS)
def test_every_kind_of_file_had_more_than_one_file(runs: Runs, name: str) -> None:
    """Else the chain would say nothing about the seams between files."""
    files = runs.step((name, len(CHAINS[name]) - 1)).files
    assert files["commitlog"] >= 5
    assert files["consumequeue/Plain/0"] >= 3
    assert files["index"] >= 3
