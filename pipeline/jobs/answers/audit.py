"""Gaps, disorder and damage in a store: `pocketmq pipeline audit --store DIR`.

Records of topics that were deleted are no finding, nor are those of the earlier life of a topic that was created again,
also in a queue that it has not used since, which looks like a lost one.

The scan makes runs of the records and compares them with the consume queues (`tables/files/runs.py`,
`tables/files/queue_check.py`), so the questions here are about a few rows for each queue, however many messages it has.
They are plain SQL over the table `runs`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from ...tables.files.locations import is_url, shown_url
from ...tables.files.run_statuses import DELETED_TOPIC, NO_QUEUE, OK, QUEUE_STATUSES
from ..report.report import Report, Section, counted
from ..sql.engine import Engine
from ..sql.message_input import MessageInput, sql_text, stores_named
from .on_engine import engine_options, run_on_engine
from .run import exit_on_user_error

_OF_QUEUES: Final = ", ".join(f"'{status}'" for status in QUEUE_STATUSES)
_STEPPED: Final = f"""
    with stepped as (
        select *, max(lastOffset) over (
            partition by topic, queueId order by firstOffset, lastOffset
            rows between unbounded preceding and 1 preceding
        ) as reached
        from runs where status = '{OK}'
    )"""
"""The runs of each queue by offset; `reached` is the highest offset of the runs before."""
DAMAGED: Final = f"""
    select file, firstPosition as physicalOffset, status, topic, queueId, firstOffset as queueOffset from runs
    where status not in ('{OK}', '{DELETED_TOPIC}', {_OF_QUEUES})
    order by physicalOffset"""
GAPS: Final = f"""{_STEPPED}
    select topic, queueId, 'missing' as what, reached + 1 as first, firstOffset - reached - 1 as count
    from stepped where firstOffset > reached + 1
    union all
    select topic, queueId, 'offset more than once', firstOffset,
        case when lastOffset < reached then lastOffset else reached end - firstOffset + 1
    from stepped where firstOffset <= reached
    order by 1, 2, 4"""
DISORDER: Final = f"""
    select topic, queueId, firstOffset as queueOffset, previous, firstPosition as physicalOffset from (
        select *, lag(lastOffset) over (partition by topic, queueId order by firstPosition) as previous
        from runs where status = '{OK}'
    ) as following where firstOffset < previous
    order by 1, 2, 5"""
_IS_DELETED: Final = f"""(status = '{DELETED_TOPIC}' or (status = '{NO_QUEUE}' and topic in (
        select topic from runs where status = '{DELETED_TOPIC}')))"""
INDEX: Final = f"""
    select topic, queueId, min(firstOffset) as queueOffset, max(lastOffset) as lastOffset,
        min(firstPosition) as physicalOffset, status as what
    from (
        select *, sum(case when firstOffset = previous + 1 then 0 else 1 end) over (
            partition by topic, queueId, status order by firstOffset, firstPosition
            rows between unbounded preceding and current row
        ) as island
        from (
            select *, lag(lastOffset) over (
                partition by topic, queueId, status order by firstOffset, firstPosition
            ) as previous
            from runs where status in ({_OF_QUEUES}) and not {_IS_DELETED}
        ) as following
    ) as numbered
    group by topic, queueId, status, island
    order by 1, 2, 3, 6"""
"""A run ends where a task of the scan ends; here they are joined."""
QUEUES: Final = f"""{_STEPPED}
    select topic, queueId, cast(sum(records) as bigint) as records, min(firstOffset) as first,
        max(lastOffset) as last, cast(sum(case
            when reached is null or firstOffset > reached then lastOffset - firstOffset + 1
            when lastOffset > reached then lastOffset - reached
            else 0 end) as bigint) as offsets, cast(sum(bytes) as bigint) as bytes
    from stepped group by topic, queueId
    order by 1, 2"""
DELETED: Final = f"""
    select topic, cast(sum(records) as bigint) as records, cast(sum(bytes) as bigint) as bytes
    from runs where {_IS_DELETED} group by topic
    order by 1"""
TABLES: Final = (
    ("damaged", "Damaged records", DAMAGED),
    ("gaps", "Gaps and repeated offsets", GAPS),
    ("order", "Records out of order", DISORDER),
    ("index", "Consume queues against the log", INDEX),
    ("queues", "Queues", QUEUES),
    ("deleted", "Records of deleted topics", DELETED),
)
"""(name, title, question) of each table of the report."""
SHOWN: Final = 20
"""Findings of each kind that are listed one by one."""

NOT_COMPARED: Final = (
    "Consume queues behind a URL are not compared with the log; copy the store to compare them."
)


def build(
    engine: Engine, store: str | Mapping[str, str], *, topics: str | None = None, checks_crc: bool = True
) -> Report:
    """The report over a store, or over those of several brokers, {name: store}: folders or URLs.

    The consume queues of a store behind a URL are not compared with its log, which would be read a second time.
    """
    stores = {None: store} if isinstance(store, str) else dict(store)
    for number, folder in enumerate(stores.values()):
        options = {"onCorrupt": "report", "verifyCrc": str(checks_crc).lower()}
        if not is_url(folder):
            options["checkQueues"] = "true"
        engine.open_store_table("scanned_runs", MessageInput(store=folder, topics=topics), "runs", **options)
        engine.keep(f"runs_{number}", "select * from scanned_runs", is_small=True)
    texts = {name: _of_all(text, list(stores)) for name, _, text in TABLES}
    sections = [Section(name, title, engine.sql(texts[name])) for name, title, _ in TABLES]
    findings, hidden_findings = findings_of(engine, texts)
    name = f"Store{'s' if len(stores) > 1 else ''} {', '.join(map(shown_url, stores.values()))}."
    if any(map(is_url, stores.values())):
        name += f" {NOT_COMPARED}"
    return Report("Store audit", name, sections, findings, hidden_findings=hidden_findings)


def _of_all(text: str, brokers: Sequence[str | None]) -> str:
    """A question about `runs` as one about the runs of each store, with the broker's name if there are names."""
    texts = [text.replace("from runs", f"from runs_{number}") for number in range(len(brokers))]
    if brokers == [None]:
        return texts[0]
    parts = [
        f"select {sql_text(name or '')} as brokerName, * from ({part}) as of_{number}"
        for number, (name, part) in enumerate(zip(brokers, texts, strict=True))
    ]
    return f"select * from ({' union all '.join(parts)}) as of_all order by 1, 2, 3, 4"


def findings_of(engine: Engine, questions: Mapping[str, str]) -> tuple[list[str], int]:
    """A sentence for each row of the tables of faults, of each at most `SHOWN`, and how many more rows there are."""
    texts = {name: questions[name] for name in ("damaged", "gaps", "order", "index")}
    found = {
        name: engine.sql(f"select * from ({text}) as faults limit {SHOWN}").rows()
        for name, text in texts.items()
    }
    hidden_findings = sum(
        engine.sql(f"select count(*) as n from ({texts[name]}) as faults").rows()[0]["n"] - SHOWN
        for name, rows in found.items()
        if len(rows) == SHOWN
    )
    return [
        *(f"{_broker(row)}{row['status']} at log position {row['physicalOffset']} ({row['file']})"
          for row in found["damaged"]),
        *(f"{_queue(row)}: {row['what']}, {counted(row['count'], 'message')} from offset {row['first']}"
          for row in found["gaps"]),
        *(f"{_queue(row)}: offset {row['queueOffset']} lies after offset {row['previous']} in the log"
          for row in found["order"]),
        *(f"{_queue(row)} {_offsets(row['queueOffset'], row['lastOffset'])}: {row['what']}"
          for row in found["index"]),
    ], hidden_findings  # fmt: skip


def _broker(row: Mapping[str, Any]) -> str:
    return f"{row['brokerName']}: " if "brokerName" in row else ""


def _queue(row: Mapping[str, Any]) -> str:
    return f"{_broker(row)}{row['topic']} queue {row['queueId']}"


def _offsets(first: int, last: int) -> str:
    return f"offset {first}" if first == last else f"offsets {first} to {last}"


@click.command("audit")
@click.option(
    "--store",
    "stores",
    required=True,
    multiple=True,
    metavar="DIR",
    help="The store: a directory, or a URL such as s3://bucket/store. NAME=DIR names its broker, and may be repeated: "
    "one for each broker.",
)
@click.option("--topics", metavar="T[,T]", help="Only these topics.")
@click.option(
    "--crc/--no-crc", "checks_crc", default=True, show_default=True, help="Check the CRC of every body."
)
@engine_options
def main(*, stores: Sequence[str], topics: str | None, checks_crc: bool, **options: Any) -> None:
    """Look for gaps, disorder and damage in a store, ours or of an official broker."""
    with exit_on_user_error():
        store, named = stores_named(stores)
    source = MessageInput(store=store, stores=named, topics=topics)
    if any(map(is_url, source.folders)):
        click.echo(f"pocketmq: {NOT_COMPARED}", err=True)
    run_on_engine(
        "audit",
        lambda engine: build(engine, store or dict(named), topics=topics, checks_crc=checks_crc),
        source,
        **options,
    )
