"""Rows of the recorded vectors in `client/vectors/` (see its README), and the message the pure client tests use."""

from base64 import b64decode
from functools import cache
from pathlib import Path
from typing import Any, cast

from pocketmq.client import PushConsumerSettings
from pocketmq.client.hooks.hooks import Hooks
from pocketmq.client.offsets.offset_store import OffsetMemory, OffsetStore
from pocketmq.client.rebalancing.consumer_context import ConsumerContext, ConsumerStatistics
from pocketmq.client.rebalancing.subscriptions import Subscriptions
from pocketmq.client.values.message import MessageExt, as_message
from pocketmq.protocol.message.record import Record

FOLDER = Path(__file__).parent / "client" / "vectors"


def pulled_message(
    queue_offset: int, body: bytes = b"", reconsume_times: int = 0, consume_start_ms: int = 0
) -> MessageExt:
    """A message as a pull returns it, with the fields that a process queue reads."""
    record = Record("T", 0, queue_offset, 0, body, b"", 0, 0, 0, bytes(8), 0, bytes(8))
    message = as_message(record, "broker-a")
    message.reconsume_times, message.consume_start_ms = reconsume_times, consume_start_ms
    return message


def consumer_context(instance: Any = None, **settings: Any) -> ConsumerContext:
    """Of a push consumer of group g that subscribes to nothing; its offsets are kept in memory."""
    offsets = cast(OffsetStore, OffsetMemory())
    statistics = ConsumerStatistics(lambda: 5.0)
    return ConsumerContext(
        instance, "g", PushConsumerSettings(**settings), Subscriptions(), offsets, statistics, Hooks()
    )


class FakeClock:
    """Milliseconds that pass only when a test advances them."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


@cache
def feature_vectors(rule: str) -> list[tuple[list[str | None], str | None]]:
    """Inputs and result of each row of a rule in `features-5.5.0.tsv`; None is Java's null."""
    lines = (FOLDER / "features-5.5.0.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [
        ([_plain(one) for one in given.split(" ")], _plain(result))
        for name, given, result in rows
        if name == rule
    ]


def _plain(text: str) -> str | None:
    return None if text == "null" else b64decode(text).decode()


@cache
def _table(version: str) -> dict[str, list[tuple[str, str]]]:
    table: dict[str, list[tuple[str, str]]] = {}
    lines = (FOLDER / f"client-{version}.tsv").read_text(encoding="utf-8").split("\n")
    for line in lines:
        if line:
            rule, given, result = line.split("\t")
            table.setdefault(rule, []).append((given, result))
    return table


def vectors(rule: str, version: str = "5.5.0") -> list[tuple[str, str]]:
    """(input, result) of one rule, in the order of recording."""
    rows = _table(version)[rule]
    assert rows
    return rows


def scripts() -> list[list[tuple[str, str]]]:
    """The scripts of operations on process queues."""
    return [rows for rule, rows in _table("5.5.0").items() if rule.startswith("process-queue-")]


def plain(encoded: str) -> str:
    return b64decode(encoded).decode()


def refusal(result: str) -> tuple[str, str] | None:
    """(code or Java class, text) of a recorded exception, None for any other result."""
    if not result.startswith("!"):
        return None
    kind, _, text = result[1:].partition(" ")
    return kind, plain(text)
