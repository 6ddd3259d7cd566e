"""Messages stored more than once: `pocketmq pipeline duplicates --store DIR`.

By message id (a producer sent again after a lost reply, a sink repeated a batch) or by keys (`--by keys`), in each
topic by itself. System topics are skipped: half messages and delayed messages are stored there first, and in their own
topic later. A copy in a retry topic, or with reconsumeTimes, was delivered again on purpose: its level is
`redelivered`, and it is not a finding.

The ids with several messages are found first. Only their messages are looked at again, of each id the first
`LISTED_PLACES`, so an id with very many messages costs no memory.
"""

from typing import Any, Final

import click
from pocketmq.protocol.message.properties import DLQ_ORIGIN_TOPIC, RETRY_TOPIC

from ..report.report import Report, Section
from ..sql.engine import Engine
from ..sql.message_input import MessageInput
from .inputs import IS_SYSTEM_TOPIC, inputs_of_several_brokers, time_options
from .on_engine import engine_options, run_on_engine

COLUMNS: Final = (
    *("topic", "brokerName", "queueId", "queueOffset", "msgId", "keys", "reconsumeTimes", "storeTimestamp"),
    "properties",
)
LISTED_FINDINGS: Final = 20
LISTED_PLACES: Final = 10
REPEATED: Final = """
select {by}, count(*) as copies from messages
where {by} is not null and not ({is_system}) and {times}
group by {by} having count(*) > 1
"""
COPIES: Final = """
select *, row_number() over (
    partition by {by}, home order by storeTimestamp, topic, brokerName nulls first, queueId, queueOffset
) as number
from (
    select *, coalesce(
        origin, max(case when isAgain then null else topic end) over (partition by {by}), topic
    ) as home
    from (
        select m.{by} as {by}, m.storeTimestamp as storeTimestamp, m.topic as topic, m.brokerName as brokerName,
               m.queueId as queueId, m.queueOffset as queueOffset, m.reconsumeTimes as reconsumeTimes,
               {is_again} as isAgain,
               case when not {is_again} then m.topic when not startswith({origin}, '%') then {origin} end as origin,
               concat(case when {is_again} then concat(m.topic, ' ') else '' end,
                      case when m.brokerName is null then '' else concat(m.brokerName, ' ') end,
                      cast(m.queueId as string), '/', cast(m.queueOffset as string)) as place
        from messages m join repeated r on m.{by} = r.{by}
        where not ({is_system}) and {times}
    ) as placed
) as at_home
"""
IS_AGAIN: Final = "(startswith(m.topic, '%RETRY%') or startswith(m.topic, '%DLQ%'))"
"""A copy for a retry, or of a group that gave up: its home is another topic, so its place names the topic."""
ORIGIN: Final = f"coalesce(m.properties['{DLQ_ORIGIN_TOPIC}'], m.properties['{RETRY_TOPIC}'])"
"""The home of such a copy, if its properties say it; else it is that of the message with the same id or keys."""
DUPLICATES: Final = """
select {by}, topic, case when firsts > 1 then 'stored twice' else 'redelivered' end as level, copies, seconds, places
from (
    select {by}, home as topic, count(*) as copies,
           sum(case when not isAgain and reconsumeTimes = 0 then 1 else 0 end) as firsts,
           (unix_micros(max(storeTimestamp)) - unix_micros(min(storeTimestamp))) / 1e6 as seconds,
           array_join(array_sort(array_agg(place) filter (where number <= {listed})), ', ') as places
    from copies group by {by}, home having count(*) > 1
) as grouped
order by 3, 2, 1
"""


def build(engine: Engine, source: MessageInput, *, by: str = "msgId") -> Report:
    """The report; `by` is msgId or keys."""
    engine.open_messages("messages", source, COLUMNS)
    words = {"by": by, "times": source.time_condition(), "listed": LISTED_PLACES}
    engine.keep("repeated", REPEATED.format(is_system=IS_SYSTEM_TOPIC, **words))
    of_message = IS_SYSTEM_TOPIC.replace("topic", "m.topic")
    engine.keep("copies", COPIES.format(is_system=of_message, is_again=IS_AGAIN, origin=ORIGIN, **words))
    engine.keep("duplicates", DUPLICATES.format(**words))
    stored_twice = engine.sql("select * from duplicates where level = 'stored twice'")
    found = engine.sql(f"select * from duplicates where level = 'stored twice' limit {LISTED_FINDINGS}")
    findings = [
        f"{row['topic']}: {by} {row[by]} is stored {row['copies']} times, {row['seconds']:.1f} s apart: {row['places']}"
        for row in found.rows()
    ]
    hidden_findings = stored_twice.count() - len(findings) if len(findings) == LISTED_FINDINGS else 0
    table = engine.sql("select * from duplicates order by level, topic, 1")
    return Report(
        "Duplicates",
        f"By {by}.",
        [Section("duplicates", "Stored more than once", table)],
        findings,
        hidden_findings=hidden_findings,
    )


@click.command("duplicates")
@inputs_of_several_brokers
@time_options
@click.option("--by", type=click.Choice(["msgId", "keys"]), default="msgId", show_default=True)
@engine_options
def main(*, by: str, source: MessageInput, **options: Any) -> None:
    """Find messages that are stored more than once."""
    run_on_engine("duplicates", lambda engine: build(engine, source, by=by), source, **options)
