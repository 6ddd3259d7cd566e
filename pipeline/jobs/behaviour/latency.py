"""Latency from sent to consumed: `pocketmq pipeline latency --store DIR`, or `--journal DIR`.

From message traces: clients with tracing enabled send trace records to RMQ_SYS_TRACE_TOPIC. In a body, records end with
0x02 and fields are separated by 0x01:

    Pub        time region group topic msgId tags keys storeHost bodyLength cost type offsetMsgId success clientHost
    SubBefore  time region group requestId msgId retryTimes keys
    SubAfter   requestId msgId cost success keys code [time group]

Latency is the time of SubBefore minus the time of Pub, for one message id. The times are from the clocks of two
machines, so a latency may be negative; those are counted. Minutes are by the time of sending.

From a broker's journal: no client needs tracing for it, and there is one clock. A send's reply has the queue offset of
its message, of a batch that of the first one and the ids of all; a pull's reply delivers the offsets from the one it
asked for up to the next one. A message is delivered to a group by the first pull reply that covers it. Latency is the
time from the arrival of the send at the broker to that reply's departure, in milliseconds.

A delayed message and one of a transaction are stored in a topic of the broker first, and the reply has their offset
there: they are counted and left out. Popped messages have no such offsets. The pulls of this package's own readers
consume nothing.
"""

from collections.abc import Sequence
from typing import Any, Final

import click
import msgspec
from pocketmq.protocol.message.properties import (
    DELAY,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TRAN_MSG,
)
from pocketmq.protocol.message.topics import TRACE_TOPIC

from ...errors import OptionError
from ...tables.planning.topic_options import DEFAULT_GROUP
from ..answers.inputs import input_options
from ..answers.on_engine import engine_options, run_on_engine
from ..answers.run import exit_on_user_error
from ..report.report import Report, Section
from ..sql.engine import Engine
from ..sql.message_input import MessageInput

SHARES: Final = """count(*) as messages, percentile_approx(latencyMs, 0.5) as p50Ms,
       percentile_approx(latencyMs, 0.95) as p95Ms, percentile_approx(latencyMs, 0.99) as p99Ms,
       max(latencyMs) as mostMs"""
DIGITS: Final = "select * from (values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) as t(d)"
NUMBERS: Final = """
select number from (
    select a.d + 10 * b.d + 100 * c.d + 1000 * e.d as number
    from digits a cross join digits b cross join digits c cross join digits e
) as numbered where number < (select max(messages) from {rows})
"""
"""0 up to the largest number of messages in a row, or to 9,999."""

# -- from message traces

BODIES: Final = """
select body, length(body) - length(replace(body, chr(2), '')) + 1 as messages
from (select text_of(body) as body from traces) as texts
"""


def _records(kind: str, fields: int, columns: str) -> str:
    """SQL: the trace records of a kind with at least so many fields; `columns` may name field k as {k}."""
    named = columns.format(*(f"split_part(record, chr(1), {number})" for number in range(1, 14)))
    return f"""
select {named} from (
    select split_part(body, chr(2), number + 1) as record from bodies join numbers on number < messages
) as recorded where split_part(record, chr(1), 1) = '{kind}'
    and length(record) - length(replace(record, chr(1), '')) >= {fields - 1}
"""


PUBLISHED: Final = f"""
select msgId, min(topic) as topic, min(sentMs) as sentMs
from ({_records("Pub", 12, "{5} as msgId, {4} as topic, try_cast({1} as bigint) as sentMs")}) as pub group by msgId
"""
RECEIVED: Final = _records(
    "SubBefore", 7, "{5} as msgId, {4} as requestId, {3} as consumer, try_cast({1} as bigint) as receivedMs"
)
DONE: Final = _records(
    "SubAfter", 5, "{1} as requestId, {2} as msgId, try_cast({3} as int) as costMs, {4} = 'true' as success"
)
TRACED: Final = """
select p.topic as topic, r.consumer as consumer, p.sentMs as sentMs, r.receivedMs - p.sentMs as latencyMs,
       d.costMs as costMs, d.success as success, date_trunc('minute', timestamp_millis(p.sentMs)) as minute
from received r left join published p on r.msgId = p.msgId
left join done d on r.requestId = d.requestId and r.msgId = d.msgId
"""
TRACE_SUMMARY: Final = f"""
select topic, consumer as group, {{minute}} {SHARES}, percentile_approx(costMs, 0.5) as costMsMedian,
       cast(sum(case when success then 0 when success is null then 0 else 1 end) as bigint) as failed
from deliveries where sentMs is not null group by {{minute}} topic, consumer order by topic, consumer {{last}}
"""
UNMATCHED_TRACES: Final = """
select what, messages, total as of from (
    select 1 as place, 'sent, never received' as what, (select count(*) from published p
        left join (select distinct msgId from received) r on p.msgId = r.msgId where r.msgId is null) as messages,
        (select count(*) from published) as total
    union all select 2, 'received, sending unknown',
        (select count(*) from deliveries where sentMs is null), (select count(*) from received)
    union all select 3, 'received, end unknown',
        (select count(*) from deliveries where success is null), (select count(*) from received)
    union all select 4, 'negative: clocks differ',
        (select count(*) from deliveries where latencyMs < 0), (select count(*) from received)
) as counted order by place
"""


def build(engine: Engine, source: MessageInput) -> Report:
    """The report over a trace topic."""
    engine.open_messages("traces", traced_in(source), ("body",))
    tables = {"bodies": BODIES, "digits": DIGITS, "numbers": NUMBERS.format(rows="bodies")}
    tables |= {"published": PUBLISHED, "received": RECEIVED, "done": DONE, "deliveries": TRACED}
    for name, text in tables.items():
        engine.keep(name, text)
    groups = engine.sql(TRACE_SUMMARY.format(minute="", last=""))
    minutes = engine.sql(TRACE_SUMMARY.format(minute="minute,", last=", minute"))
    sections = [
        Section("groups", "Latency by group", groups),
        Section("minutes", "Latency by minute", minutes),
        Section("unmatched", "What could not be matched", engine.sql(UNMATCHED_TRACES)),
    ]
    return Report("End-to-end latency", f"From traces of {source.name}.", sections)


def traced_in(source: MessageInput) -> MessageInput:
    """The same input with the trace topic, unless topics are named."""
    return source if source.topics else msgspec.structs.replace(source, topics=TRACE_TOPIC)


# -- from journals

STORED: Final = """
select journal, topic, queueId, cast(replyFields['queueOffset'] as bigint) as queueOffset, time as sent,
       length(replyFields['msgId']) - length(replace(replyFields['msgId'], ',', '')) + 1 as messages,
       concat(chr(2), coalesce(fields['i'], fields['properties'], '')) as properties
from journal
where kind = 'exchange' and request in ('SEND_MESSAGE', 'SEND_MESSAGE_V2', 'SEND_BATCH_MESSAGE')
    and replyCode in (0, 10, 11, 12) and replyFields['queueOffset'] is not null
    and not startswith(topic, 'RMQ_SYS_')
"""


def _has(*names: str) -> str:
    """SQL: whether a property text has one of these."""
    return " or ".join(f"contains(properties, concat(chr(2), '{name}', chr(1)))" for name in names)


LATER: Final = f"""
select *, case when {_has(TRAN_MSG)} then 'in a transaction'
               when {_has(DELAY, TIMER_DELIVER_MS, TIMER_DELAY_MS, TIMER_DELAY_SEC)} then 'delayed' end as later
from stored
"""
SENDS: Final = """
select journal, topic, queueId, queueOffset + number as queueOffset, sent
from placed join numbers on number < messages where later is null
"""
LEFT_OUT: Final = """
select topic, later as what, count(*) as messages from placed where later is not null group by topic, later
order by topic, later
"""
PULLS: Final = """
select journal, fields['consumerGroup'] as consumerGroup, topic, queueId, answered,
       cast(fields['queueOffset'] as bigint) as firstOffset,
       cast(replyFields['nextBeginOffset'] as bigint) as nextOffset
from journal
where kind = 'exchange' and request in ('PULL_MESSAGE', 'LITE_PULL_MESSAGE') and replyCode = 0
    and answered is not null and replyFields['nextBeginOffset'] is not null
    and fields['consumerGroup'] <> '{readers}'
"""
DELIVERIES: Final = """
select p.consumerGroup as consumerGroup, s.journal as journal, s.topic as topic, s.queueId as queueId,
       s.queueOffset as queueOffset, min(s.sent) as sent,
       (unix_micros(min(p.answered)) - unix_micros(min(s.sent))) / 1000.0 as latencyMs
from sends s join pulls p on s.journal = p.journal and s.topic = p.topic and s.queueId = p.queueId
    and s.queueOffset >= p.firstOffset and s.queueOffset < p.nextOffset
group by p.consumerGroup, s.journal, s.topic, s.queueId, s.queueOffset
"""
SUMMARY: Final = f"""
select {{keys}}, {SHARES}
from (select *, date_trunc('minute', sent) as minute from deliveries) as dated group by {{keys}} order by {{keys}}
"""
UNMATCHED: Final = """
select s.topic as topic, count(*) as messages from sends s
left join deliveries d on s.journal = d.journal and s.topic = d.topic and s.queueId = d.queueId
    and s.queueOffset = d.queueOffset
where d.topic is null group by s.topic order by s.topic
"""


def build_of_journals(engine: Engine, journals: Sequence[str]) -> Report:
    """The report over journals in folders or files."""
    names = [f"journal_{number}" for number in range(len(journals))]
    for name, path in zip(names, journals, strict=True):
        engine.open_journal(name, path)
    tables = {"journal": " union all ".join(f"select * from {name}" for name in names), "stored": STORED}
    tables |= {"placed": LATER, "digits": DIGITS, "numbers": NUMBERS.format(rows="stored"), "sends": SENDS}
    tables |= {"pulls": PULLS.format(readers=DEFAULT_GROUP), "deliveries": DELIVERIES}
    for name, text in tables.items():
        engine.keep(name, text)
    by_minute = engine.sql(SUMMARY.format(keys="topic, consumerGroup, minute"))
    sections = [
        Section("groups", "Latency by group", engine.sql(SUMMARY.format(keys="topic, consumerGroup"))),
        Section("minutes", "Latency by minute of sending", by_minute),
        Section("unmatched", "Sent, never pulled", engine.sql(UNMATCHED)),
        Section("leftOut", "Not counted: their offsets are not in the replies", engine.sql(LEFT_OUT)),
    ]
    return Report("Latency from sent to pulled", f"From the journals {', '.join(journals)}.", sections)


@click.command("latency")
@input_options
@click.option(
    "--journal",
    "journals",
    multiple=True,
    metavar="DIR",
    help="A broker's journal instead of message traces.",
)
@engine_options
def main(*, journals: tuple[str, ...], source: MessageInput, **options: Any) -> None:
    """Latency from sent to consumed, from the trace topic (--topics names another one) or from journals."""
    if journals:
        run_on_engine(
            "latency",
            lambda engine: build_of_journals(engine, journals),
            check=lambda: check_journals(source, journals),
            **options,
        )
        return
    traced = traced_in(source)
    with exit_on_user_error():
        if source.namesrv_addr is None and not source.folders:
            raise OptionError("one of --journal DIR, --store DIR and --namesrv ADDR", "is required")
    run_on_engine("latency", lambda engine: build(engine, traced), traced, **options)


def check_journals(source: MessageInput, journals: tuple[str, ...]) -> None:
    """`OptionError` unless all the input is journals."""
    from ...tables.files.journal_rows import journal_paths

    if source.store is not None or source.namesrv_addr is not None:
        raise OptionError("--journal", ": name no store and no broker with it")
    journal_paths(journals, "--journal")
