"""How far groups are behind: `pocketmq pipeline lag --store DIR`, or `-n ADDR`.

For each group, topic, broker and queue: offset, end, lag in messages, and how long the next unread message has been
waiting. Needs neither an engine nor Spark; `lag_rows.py` says what is read.
"""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from ...tables.planning.option_values import names_in
from ..report.report import Report, Section
from ..sql.message_input import MessageInput, check_is_folder
from .inputs import input_options
from .on_engine import run_without_engine
from .run import output_options

if TYPE_CHECKING:
    from .lag_rows import Lag


def build(
    source: MessageInput,
    *,
    groups: str | None = None,
    now_ms: Callable[[], float] = lambda: time.time() * 1000,
) -> Report:
    """The report; `groups` are comma-separated names, None for all that have offsets."""
    import pyarrow as pa

    from ..sql.arrow_frame import frame_of_rows
    from .lag_rows import lags_of_brokers, lags_of_store

    if source.store is not None:
        check_is_folder("lag", source.store)
    source.check()
    names = names_in(groups)
    found = sorted(
        lags_of_store(source, names) if source.store is not None else lags_of_brokers(source, names)
    )
    now = now_ms()
    place = {"group": pa.string(), "topic": pa.string()}
    of_queue = {
        "brokerName": pa.string(),
        "queueId": pa.int32(),
        "offset": pa.int64(),
        "maxOffset": pa.int64(),
    }
    lag_columns = {"lag": pa.int64(), "waitingSeconds": pa.float64()}
    by_group = {**place, **lag_columns, "queues": pa.int64()}
    by_queue = {**place, **of_queue, **lag_columns}
    queues = [(*_place(lag), lag.offset, lag.end, lag.messages, lag.waiting_seconds(now)) for lag in found]
    unknown = [name for name in names if name not in {lag.group for lag in found}]
    return Report(
        "Lag",
        f"Of {source.name}." + (f" Without offsets: {', '.join(unknown)}." if unknown else ""),
        [
            Section("groups", "Groups", frame_of_rows(by_group, _by_group(found, now))),
            Section("queues", "Queues", frame_of_rows(by_queue, queues)),
        ],
    )


def _place(lag: "Lag") -> tuple[str, str, str | None, int]:
    return lag.group, lag.topic, lag.broker_name or None, lag.queue_id


def _by_group(found: "Iterable[Lag]", now: float) -> list[tuple[Any, ...]]:
    sums: dict[tuple[str, str], list[Lag]] = {}
    for lag in found:
        sums.setdefault((lag.group, lag.topic), []).append(lag)
    rows: list[tuple[Any, ...]] = []
    for (group, topic), lags in sums.items():
        waits = [wait for lag in lags if (wait := lag.waiting_seconds(now)) is not None]
        rows.append((group, topic, sum(lag.messages for lag in lags), max(waits, default=None), len(lags)))
    return rows


@click.command("lag")
@input_options
@click.option("--groups", metavar="G[,G]", help="Groups to report.  [default: all that have offsets]")
@output_options
def main(*, groups: str | None, source: MessageInput, **options: Any) -> None:
    """How far groups are behind, in messages and in time."""
    run_without_engine("lag", lambda _: build(source, groups=groups), **options)
