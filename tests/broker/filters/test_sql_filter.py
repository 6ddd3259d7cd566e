"""SQL92 expressions: the table of official answers, what is refused, and pulls that wait or go on.

`sql/rows.tsv` was recorded by `sql/record_rows.py` from the official filter modules of both lines.
"""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pocketmq.broker.broker import Broker
from pocketmq.broker.filters import consumer_filters
from pocketmq.broker.filters.bloom_filter import BloomFilter
from pocketmq.broker.filters.sql_filter import MAX_EXPRESSION, ExpressionRefused, compile_expression
from pocketmq.broker.filters.sql_grammar import read_expression
from pocketmq.broker.filters.sql_operands import EvaluationError, SqlError
from pocketmq.broker.network.dispatch import HELD, Answer
from pocketmq.protocol.bodies.client import ConsumerData, HeartbeatData, SubscriptionData, build_subscription
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.flags import PULL_SUBSCRIPTION, PULL_SUSPEND
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.requests.membership import HeartBeat
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.store import VirtualClock

from broker_fakes import MakeBroker, ask, connect, pull_request, send, store_message, turns

ROWS = (Path(__file__).parent / "sql" / "rows.tsv").read_text(encoding="utf-8").split("\n")[:-1]
ANSWERS = {True: "T", False: "F", None: "N"}


def plain(cell: str) -> str:
    escapes = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "s": " "}
    return re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), cell)


def judged(expression: str, properties: dict[str, str], emulate: int) -> str:
    try:
        operand = read_expression(expression, is_5=emulate == 5)
        return ANSWERS[operand.evaluate("\x02" + encode_properties_text(properties))]
    except SqlError:
        return "X"
    except EvaluationError:
        return "E"


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("nan > infinite", "T"),
        ("nan <= infinite", "F"),
        ("nan BETWEEN nan AND nan", "T"),
        ("infinite >= infinite", "T"),
        ("(word = 1) ENDSWITH ''", "F"),
        ("(word = 1) ENDSWITH 'x'", "E"),
    ],
)
def test_special_numbers_and_values_that_are_not_looked_at(expression: str, answer: str) -> None:
    """As both official filter modules answer."""
    properties = {"nan": " NaN", "infinite": "Infinity", "word": "x"}
    assert judged(expression, properties, 5) == answer


@pytest.mark.parametrize(("emulate", "column"), [(5, 2), (4, 3)])
def test_every_recorded_expression_has_the_official_result(emulate: int, column: int) -> None:
    assert len(ROWS) > 2000
    wrong = []
    for row in ROWS:
        cells = row.split("\t")
        pairs = [pair.split("=", 1) for pair in cells[1].split(" ") if pair]
        answer = judged(plain(cells[0]), {name: plain(value) for name, value in pairs}, emulate)
        if answer != cells[column]:
            wrong.append((row, answer))
    assert wrong == []


@given(st.text(alphabet="ab'5.-()=<> ,NOTINBEWARLS_$/*e\n\x00é", max_size=40))
@example("a = 5 /*")
@example("((((((((")
def test_any_text_is_compiled_or_refused(text: str) -> None:
    assert judged(text, {"a": "5"}, 5) in "TFNEX"


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 5000 + "a = 5",
        "NOT " * 5000 + "a",
        "a" + " = a" * 5000,
        "a = " + "-" * 5000 + " 5",
        "a = '" + "x" * (1 << 20) + "'",
        "x" * (1 << 20),
        "a = " + "9" * 5000,
        "a = " + "9" * 5000 + ".0e999",
        "",
    ],
)
def test_what_is_too_deep_or_too_long_is_refused(expression: str) -> None:
    with pytest.raises(ExpressionRefused, match="Invalid SQL92 expression"):
        compile_expression(expression, "SQL92", is_5=True)


def test_a_long_chain_is_not_deep() -> None:
    chain = " OR ".join(["a = 6"] * 700 + ["a = 5"])
    assert len(chain) < MAX_EXPRESSION
    assert judged(chain, {"a": "5"}, 5) == "T"


def test_the_last_of_equal_properties_counts_and_an_empty_one_does_not() -> None:
    evaluate = read_expression("a = '2'").evaluate
    assert evaluate("\x02a\x011\x02a\x012\x02") is True
    assert evaluate("\x02a\x012\x02a\x01\x02") is True
    assert evaluate("\x02ba\x012\x02") is None


@pytest.mark.parametrize(
    ("text", "positions"),
    [
        ("sql_group#sql_topic", [93, 56, 12]),
        ("g#orders", [19, 14, 16]),
        ("group_billing#a_topic_with_a_longer_name_é", [69, 12, 49]),
    ],
)
def test_bloom_positions_are_the_official_ones(text: str, positions: list[int]) -> None:
    # What `FilterRows.java` prints for these arguments.
    data = BloomFilter(20, 32).generate(text)
    assert (data.bit_num, data.bit_pos) == (112, positions)


# -- at the broker


@pytest.fixture
def filled(broker: Broker) -> Broker:
    """A topic with four messages, property n from 0 to 3, in queue 0."""
    broker.config.enable_property_filter = True
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=1, write_queue_nums=1))
    for number in range(4):
        store_message(broker, "orders", 0, f"m{number}".encode(), {"n": str(number)})
    return broker


def sql_pull(offset: int = 0, **changes: Any) -> PullMessage:
    return pull_request(offset, **{"subscription": "n > 1", "expression_type": "SQL92", **changes})


def sql(expression: str, version: int = 1, kind: str = "SQL92") -> SubscriptionData:
    return build_subscription("orders", expression, kind, sub_version=version)


@pytest.mark.parametrize(
    "expression",
    ["-" * 32_000, "a=1\n AND " + "-" * 32_000, "a=1\n AND a=1" + " AND a=--1" * 3200],
    ids=["hyphens", "hyphens after a line", "signs"],
)
def test_hyphens_that_begin_no_comment_are_refused_quickly(expression: str) -> None:
    """At each two hyphens the rule of comments looked for the end of the line: 5 s for 32 KB, now 0.05 s."""
    start = time.process_time()
    with pytest.raises(ExpressionRefused):
        compile_expression(expression, "SQL92", is_5=True)
    assert time.process_time() - start < 0.5


def test_a_comment_ends_with_its_line() -> None:
    assert compile_expression("a = 1 -- or not\n AND b = 2", "SQL92", is_5=True).matches_text(
        b"a\x011\x02b\x012"
    )


def test_the_longer_an_expression_the_fewer_messages_one_read_looks_at() -> None:
    assert compile_expression("a = 1", "SQL92", is_5=True).max_reads >= 800
    assert compile_expression(" OR ".join(["a = 1"] * 700), "SQL92", is_5=True).max_reads == 12


async def test_a_pull_with_a_long_expression_goes_on_where_it_stopped(filled: Broker) -> None:
    nothing = " OR ".join(f"n = {number}" for number in range(10, 710))
    most = compile_expression(nothing, "SQL92", is_5=True).max_reads
    for _ in range(2 * most):
        store_message(filled, "orders", 0, b"x", {"n": "1"})
    offset, seen = 0, []
    while offset < 4 + 2 * most:
        answer = await ask(filled, sql_pull(offset, subscription=nothing))
        assert answer.code == 20
        offset = int(answer.fields["nextBeginOffset"])
        seen.append(offset)
    assert seen == [most, 2 * most, 2 * most + 4]


async def test_without_the_switch_sql_is_refused_before_anything_is_compiled(filled: Broker) -> None:
    filled.config.enable_property_filter = False
    await join_group(filled, "g", [sql("n >")])
    answer = await ask(filled, sql_pull(sys_flag=0, sub_version=1))
    remark = "The broker does not support consumer to filter message by SQL92"
    assert (answer.code, answer.remark) == (1, remark)


async def test_a_held_pull_wakes_for_a_match_only(filled: Broker) -> None:
    connection = connect(filled)
    pull = sql_pull(4, sys_flag=PULL_SUBSCRIPTION | PULL_SUSPEND)
    assert await send(filled, pull, connection=connection) is HELD
    store_message(filled, "orders", 0, b"no", {"n": "1"})
    store_message(filled, "orders", 0, b"yes", {"n": "9"})
    await turns()
    [late] = connection.late_answers
    assert isinstance(late, Answer)
    assert late.code == 0


async def join_group(broker: Broker, group: str, subscriptions: list[SubscriptionData]) -> None:
    consumer = ConsumerData(group_name=group, subscription_data_set=subscriptions)
    body = HeartbeatData(client_id="c", consumer_data_set=[consumer]).encode()
    assert (await ask(broker, HeartBeat(), body=body)).code == 0


async def test_filters_outlive_a_restart_and_die_with_their_group(
    broker_maker: MakeBroker, clock: VirtualClock
) -> None:
    broker = broker_maker()
    broker.membership.filters.register("g", [sql("n > 1", version=7)])
    broker.membership.filters.persist()
    born_ms = clock.now_ms()
    text = json.loads(broker.membership.filters.file.path.read_bytes())
    assert text["filterDataByTopic"]["orders"]["groupFilterData"]["g"] == {
        "bloomFilterData": {"bitNum": 112, "bitPos": [19, 14, 16]},
        "bornTime": born_ms,
        "clientVersion": 7,
        "consumerGroup": "g",
        "dead": False,
        "deadTime": 0,
        "expression": "n > 1",
        "expressionType": "SQL92",
        "topic": "orders",
    }

    clock.advance(60_000)
    broker.membership.filters.unregister("g")
    broker.membership.filters.persist()
    assert broker.membership.filters.load()
    known = broker.membership.filters.find("orders", "g")
    assert known is not None
    assert (known[0].is_dead, known[0].dead_time) == (True, born_ms + 60_000)
    broker.membership.filters.register("g", [sql("n > 1", version=8)])
    known = broker.membership.filters.find("orders", "g")
    assert known is not None
    assert not known[0].is_dead
    broker.membership.filters.unregister("g")
    clock.advance(86_400_000)
    broker.membership.filters.clean()
    assert broker.membership.filters.find("orders", "g") is None


async def test_filters_have_a_share_of_memory_and_the_dead_make_room(
    broker: Broker, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_filters, "MAX_CHARACTERS", 3 * 250)
    filters = broker.membership.filters
    for group in "abcd":
        filters.register(group, [sql("n > 1")])
    assert [filters.find("orders", group) is not None for group in "abcd"] == [True, True, True, False]
    filters.unregister("b")
    clock.advance(1)
    filters.register("d", [sql("n > 1")])
    assert [filters.find("orders", group) is not None for group in "abcd"] == [True, False, True, True]
