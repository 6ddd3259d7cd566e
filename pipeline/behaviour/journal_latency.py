"""Latency from sent to pulled, from a broker's journal: no client needs tracing for it, and there is one clock.

A send's reply has the queue offset of its message, of a batch that of the first one and the ids of all; a pull's reply
delivers the offsets from the one it asked for up to the next one. A message is delivered to a group by the first pull
reply that covers it. Latency is the time from the arrival of the send at the broker to that reply's departure, in
milliseconds.

A delayed message and one of a transaction are stored in a topic of the broker first, and the reply has their offset
there: they are counted and left out. Popped messages have no such offsets. The pulls of this package's own readers
consume nothing.
"""

from collections.abc import Sequence
from typing import Final

from pocketmq.protocol.message.properties import (
    DELAY,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TRAN_MSG,
)

from ..planning.topic_options import DEFAULT_GROUP
from ..report.report import Report, Section
from ..sql.engine import Engine

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
NUMBERS: Final = """
select number from (
    select a.d + 10 * b.d + 100 * c.d + 1000 * e.d as number
    from digits a cross join digits b cross join digits c cross join digits e
) as numbered where number < (select max(messages) from stored)
"""
"""0 up to the size of the largest batch, or to 9,999."""
DIGITS: Final = "select * from (values (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) as t(d)"
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
SUMMARY: Final = """
select {keys}, count(*) as messages, percentile_approx(latencyMs, 0.5) as p50Ms,
       percentile_approx(latencyMs, 0.95) as p95Ms, percentile_approx(latencyMs, 0.99) as p99Ms,
       max(latencyMs) as mostMs
from deliveries group by {keys} order by {keys}
"""
UNMATCHED: Final = """
select s.topic as topic, count(*) as messages from sends s
left join deliveries d on s.journal = d.journal and s.topic = d.topic and s.queueId = d.queueId
    and s.queueOffset = d.queueOffset
where d.topic is null group by s.topic order by s.topic
"""


def build(engine: Engine, journals: Sequence[str]) -> Report:
    """The report over journals in folders or files."""
    names = []
    for number, path in enumerate(journals):
        names.append(f"journal_{number}")
        engine.open_journal(names[-1], path)
    engine.keep("journal", " union all ".join(f"select * from {name}" for name in names))
    for name, text in (("stored", STORED), ("placed", LATER), ("digits", DIGITS), ("numbers", NUMBERS)):
        engine.keep(name, text)
    engine.keep("sends", SENDS)
    engine.keep("pulls", PULLS.format(readers=DEFAULT_GROUP))
    engine.keep("deliveries", DELIVERIES)
    by_minute = SUMMARY.format(keys="topic, consumerGroup, minute").replace(
        "from deliveries", "from (select *, date_trunc('minute', sent) as minute from deliveries) as dated"
    )
    sections = [
        Section("groups", "Latency by group", engine.sql(SUMMARY.format(keys="topic, consumerGroup"))),
        Section("minutes", "Latency by minute of sending", engine.sql(by_minute)),
        Section("unmatched", "Sent, never pulled", engine.sql(UNMATCHED)),
        Section("leftOut", "Not counted: their offsets are not in the replies", engine.sql(LEFT_OUT)),
    ]
    return Report("Latency from sent to pulled", f"From the journals {', '.join(journals)}.", sections)
