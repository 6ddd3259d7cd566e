"""Two stores or clusters compared: `pocketmq pipeline compare LEFT RIGHT`.

LEFT and RIGHT are a store directory, NAME=DIR[,NAME=DIR] for those of several brokers, or the address of name servers.
Messages are matched by the ids of the clients (UNIQ_KEY), whatever their queues and order; messages without one are
counted only, and the report says how many these are. Bodies are read and decompressed, so a damaged one differs from
its copy, and one that only one side has compressed does not. System topics are skipped. Exit code 1 says that there is
a difference. The proof after a mirror, a migration or a fail-over.
"""

from pathlib import Path
from typing import Any, Final

import click
from pocketmq.client.access_options import access_options

from ...errors import OptionError, PathError
from ...tables.files.locations import is_url
from ..report.report import Report, Section, counted
from ..sql.engine import Engine
from ..sql.message_input import MessageInput, stores_named
from .inputs import IS_SYSTEM_TOPIC, time_options
from .on_engine import engine_options, run_on_engine
from .run import exit_on_user_error

COLUMNS: Final = (
    *("topic", "brokerName", "queueId", "queueOffset", "msgId", "offsetMsgId", "body"),
    *("storeSize", "bornTimestamp", "storeTimestamp"),
)
SIDES: Final = ("left", "right")
ROWS: Final = """
select '{side}' as side, topic, coalesce(brokerName, '') as brokerName, queueId, queueOffset,
       case when msgId <> offsetMsgId then msgId end as id, storeSize,
       case when msgId <> offsetMsgId then md5(body) end as md5, date_trunc('minute', bornTimestamp) as minute
from {side}_messages where not ({is_system}) and {times}
"""
_BY_SIDE: Final = """cast(sum(case when side = 'left' then {n} else 0 end) as bigint) as leftMessages,
       cast(sum(case when side = 'right' then {n} else 0 end) as bigint) as rightMessages,
       cast(sum(case when side = 'left' then {bytes} else 0 end) as bigint) as leftBytes,
       cast(sum(case when side = 'right' then {bytes} else 0 end) as bigint) as rightBytes"""
COUNTS: Final = f"""
select {{group}}, {_BY_SIDE.format(n="n", bytes="bytes")} from sums group by {{group}} order by {{group}}
"""
SUMS: Final = """
select side, topic, brokerName, queueId, count(*) as n, cast(sum(storeSize) as bigint) as bytes,
       min(queueOffset) as least, max(queueOffset) as most, count(*) - count(id) as nameless
from both_sides group by side, topic, brokerName, queueId
"""
MINUTES: Final = f"""
select topic, minute, {_BY_SIDE.format(n="1", bytes="storeSize")} from (
    select side, topic, storeSize,
           case when id is null then minute else min(minute) over (partition by topic, id) end as minute
    from both_sides
) as placed group by topic, minute order by topic, minute
"""
"""A copy counts in the minute of its message: copies are sent later, and several in one request have one time."""
UNCOMPARED: Final = """
select side, cast(sum(nameless) as bigint) as nameless from sums group by side order by side
"""
MATCHED: Final = """
select topic, id,
       sum(case when side = 'left' then 1 else 0 end) as lefts,
       sum(case when side = 'right' then 1 else 0 end) as rights,
       min(case when side = 'left' then brokerName end) as leftBroker,
       min(case when side = 'right' then brokerName end) as rightBroker,
       min(case when side = 'left' then queueId end) as leftQueue,
       min(case when side = 'left' then queueOffset end) as leftOffset,
       min(case when side = 'right' then queueId end) as rightQueue,
       min(case when side = 'right' then queueOffset end) as rightOffset,
       min(case when side = 'left' then md5 end) as leftMd5, min(case when side = 'right' then md5 end) as rightMd5,
       max(case when side = 'left' then md5 end) as leftLast, max(case when side = 'right' then md5 end) as rightLast
from both_sides where id is not null group by topic, id
having sum(case when side = 'left' then 1 else 0 end) <> sum(case when side = 'right' then 1 else 0 end)
    or min(md5) <> max(md5)
"""
PLACED: Final = """
select topic, id, missingIn, brokerName, queueId, queueOffset,
       case when isFirst and isLast then 'whole queue' when isFirst then 'start' when isLast then 'end' else 'between'
       end as place
from (
    select m.topic as topic, m.id as id, m.missingIn as missingIn, m.brokerName as brokerName, m.queueId as queueId,
           m.queueOffset as queueOffset, m.queueOffset - b.least + 1 = m.number as isFirst,
           b.most - m.queueOffset + 1 = m.messages - m.number + 1 as isLast
    from (
        select *, row_number() over (partition by topic, missingIn, brokerName, queueId order by queueOffset, id)
                  as number,
               count(*) over (partition by topic, missingIn, brokerName, queueId) as messages
        from (
            select topic, id, case when lefts = 0 then 'left' else 'right' end as missingIn,
                   case when lefts = 0 then 'right' else 'left' end as side,
                   coalesce(leftBroker, rightBroker) as brokerName, coalesce(leftQueue, rightQueue) as queueId,
                   coalesce(leftOffset, rightOffset) as queueOffset
            from unmatched where lefts = 0 or rights = 0
        ) as one_sided
    ) as m
    join (
        select side, topic, brokerName, queueId, min(least) as least, max(most) as most from sums
        group by side, topic, brokerName, queueId
    ) as b on b.side = m.side and b.topic = m.topic and b.brokerName = m.brokerName and b.queueId = m.queueId
) as numbered
"""
PLACES: Final = """
select topic, missingIn, place, count(*) as messages from missing_messages group by topic, missingIn, place
order by topic, missingIn, place
"""
MISSING: Final = """
select topic, id, missingIn, place, case when brokerName <> '' then brokerName end as brokerName, queueId, queueOffset
from missing_messages order by topic, missingIn, brokerName, queueId, queueOffset, id
"""
REPEATED: Final = """
select topic, id, lefts as leftMessages, rights as rightMessages
from unmatched where lefts > 0 and rights > 0 and lefts <> rights order by topic, id
"""
IS_DIFFERENT: Final = "(leftMd5 <> rightMd5 or leftLast <> rightLast)"
"""An id that two messages share has two bodies, which may be the same two on both sides."""
DIFFERENT: Final = f"""
select topic, id, leftQueue, leftOffset, rightQueue, rightOffset, leftMd5, rightMd5
from unmatched where lefts > 0 and rights > 0 and {IS_DIFFERENT} order by topic, id
"""
FINDINGS: Final = f"""
select topic, sum(case when lefts = 0 then 1 else 0 end) as notLeft,
       sum(case when rights = 0 then 1 else 0 end) as notRight,
       sum(case when rights > 0 and lefts > rights then 1 else 0 end) as moreLeft,
       sum(case when lefts > 0 and rights > lefts then 1 else 0 end) as moreRight,
       sum(case when lefts > 0 and rights > 0 and {IS_DIFFERENT} then 1 else 0 end) as different
from unmatched group by topic order by topic
"""
ABOUT_PLACES: Final = (
    "At the start of a queue: the other side has deleted them, or never had them. At the end: not copied yet, "
    "or sent after the other side was read. Between: lost, or damaged."
)


def build(
    engine: Engine,
    left: MessageInput,
    right: MessageInput,
    *,
    has_queues: bool = False,
    has_minutes: bool = False,
) -> Report:
    """The report. Both inputs have the same topics and times."""
    for side, source in zip(SIDES, (left, right), strict=True):
        engine.open_messages(f"{side}_messages", source, COLUMNS)
    rows = [ROWS.format(side=side, is_system=IS_SYSTEM_TOPIC, times=left.time_condition()) for side in SIDES]
    engine.keep("both_sides", " union all ".join(rows))
    engine.keep("sums", SUMS)
    engine.keep("unmatched", MATCHED)
    engine.keep("missing_messages", PLACED)
    sections = [Section("topics", "Topics", engine.sql(COUNTS.format(group="topic")))]
    if has_queues:
        sections.append(Section("queues", "Queues", engine.sql(COUNTS.format(group="topic, queueId"))))
    if has_minutes:
        sections.append(Section("minutes", "Minutes of sending", engine.sql(MINUTES)))
    sections += [
        Section("places", "On one side only, by place in the queue", engine.sql(PLACES), note=ABOUT_PLACES),
        Section("missing", "On one side only", engine.sql(MISSING)),
        Section("repeated", "More often on one side", engine.sql(REPEATED)),
        Section("different", "Same id, other body", engine.sql(DIFFERENT)),
    ]
    lead = f"{left.name} on the left, {right.name} on the right.{_uncompared(engine)}"
    return Report("Comparison", lead, sections, _findings(engine, left, right))


def _uncompared(engine: Engine) -> str:
    """What is only counted, as more sentences."""
    return "".join(
        f" On the {row['side']} {counted(int(row['nameless']), 'message')} without a client's id, counted only."
        for row in engine.sql(UNCOMPARED).rows()
        if row["nameless"]
    )


def _findings(engine: Engine, left: MessageInput, right: MessageInput) -> list[str]:
    findings = []
    for row in engine.sql(FINDINGS).rows():
        for count, text in (
            (row["notRight"], f"{counted(int(row['notRight']), 'message')} missing in {right.name}"),
            (row["notLeft"], f"{counted(int(row['notLeft']), 'message')} missing in {left.name}"),
            (row["moreLeft"], f"{counted(int(row['moreLeft']), 'message')} more often in {left.name}"),
            (row["moreRight"], f"{counted(int(row['moreRight']), 'message')} more often in {right.name}"),
            (row["different"], f"{counted(int(row['different']), 'message')} with another body"),
        ):
            if count:
                findings.append(f"{row['topic']}: {text}")
    counts = engine.sql(COUNTS.format(group="topic")).rows()
    named = {finding.partition(":")[0] for finding in findings}
    findings += [
        f"{row['topic']}: {row['leftMessages']:,} messages on the left, {row['rightMessages']:,} on the right"
        for row in counts
        if row["leftMessages"] != row["rightMessages"] and row["topic"] not in named
    ]
    return findings


def input_of(text: str, topics: str | None, **others: Any) -> MessageInput:
    """A store directory, NAME=DIR[,NAME=DIR] for the stores of several brokers, or the address of name servers."""
    if "=" in text and not Path(text).exists() and not is_url(text.partition("=")[0]):
        _, stores = stores_named(text.split(","))
        return MessageInput(stores=stores, topics=topics, **others)
    is_store = Path(text).is_dir() or "/" in text
    if is_store:
        return MessageInput(store=text, topics=topics, **others)
    return MessageInput(namesrv_addr=text, topics=topics, **others)


def check(left: MessageInput, right: MessageInput) -> None:
    """`OptionError` for a side that cannot be read."""
    for name, side in (("LEFT", left), ("RIGHT", right)):
        try:
            side.check_topics()
        except PathError as error:
            raise error.named(name) from error
        except OptionError as error:
            if error.option != "--namesrv":
                raise
            raise OptionError(
                name, f"must be the folder of a store, or name servers as host:port, got {side.name!r}"
            ) from error


@click.command("compare")
@click.argument("left")
@click.argument("right")
@click.option("--topics", metavar="T[,T]", help="Topics to compare; required unless both are stores.")
@click.option("--queues", "has_queues", is_flag=True, help="Count by queue, too.")
@click.option("--minutes", "has_minutes", is_flag=True, help="Count by minute of sending, too.")
@time_options
@access_options
@engine_options
def main(
    *, left: str, right: str, topics: str | None, has_queues: bool, has_minutes: bool, **values: Any
) -> None:
    """Compare LEFT and RIGHT: stores, or clusters by their name servers."""
    others = {name: values.pop(name) for name in ("since_ms", "until_ms", "access")}
    with exit_on_user_error():
        sides = [input_of(text, topics, **others) for text in (left, right)]
    run_on_engine(
        "compare",
        lambda engine: build(engine, *sides, has_queues=has_queues, has_minutes=has_minutes),
        *sides,
        check=lambda: check(*sides),
        **values,
    )
