"""Dead letters: what is dead and why, and back to where it came from: `pocketmq pipeline dlq -n ADDR`.

A dead letter is a message in `%DLQ%GROUP`: its group gave up after the last attempt. `--retrying` shows `%RETRY%GROUP`
too: messages that will be tried again. Copies go to the topic of origin, so that every group of that topic gets them,
or to the retry topic of the group. What was sent back is remembered as the offset of group `pocketmq-dlq` in the dead
letter topic, also if a broker refuses a copy and the job ends.
"""

import time
from collections.abc import Collection
from typing import Any, Final

import click
import msgspec
from pocketmq.protocol.message.topics import is_dlq_topic, is_retry_topic

from ...errors import OptionError
from ...tables.files.store_topics import topics_of_store
from ...tables.planning.option_values import names_in
from ...tables.planning.spelling import did_you_mean
from ..answers.inputs import input_options, time_options
from ..answers.on_engine import engine_options, run_on_engine
from ..report.report import Report, Section, counted
from ..sql.engine import Engine
from ..sql.message_input import MessageInput, sql_text
from .dead_letters import GROUP, ORIGIN, ORIGIN_SQL, TIMEOUT_MS, Wanted, group_of, placed_sql

COLUMNS: Final = (
    *("topic", "brokerName", "queueId", "queueOffset", "keys", "tags", "reconsumeTimes", "bornTimestamp"),
    *("storeTimestamp", "msgId", "storeSize", "properties"),
)
DEAD: Final = """
select * from (
    select consumerGroup, case when startswith(topic, '%DLQ%') then 'dead' else 'retrying' end as state,
           {origin} as originTopic,
           tags, keys, reconsumeTimes as attempts, bornTimestamp as born, storeTimestamp as died, msgId, storeSize,
           topic as storedIn, brokerName, queueId, queueOffset
    from (select *, {group} as consumerGroup, {stored_origin} as storedOrigin from messages where {condition}) as placed
) as letters where {of_origin}
"""
GROUPS: Final = """
select consumerGroup, state, originTopic, tags, count(*) as messages, min(attempts) as leastAttempts,
       max(attempts) as mostAttempts, min(died) as oldest, max(died) as newest,
       round({now} - unix_micros(min(died)) / 1e6, 0) as oldestAgeSeconds, cast(sum(storeSize) as bigint) as bytes
from dead group by consumerGroup, state, originTopic, tags order by messages desc, consumerGroup, state,
       originTopic nulls first, tags nulls first
"""
ATTEMPTS: Final = """
select consumerGroup, state, attempts, count(*) as messages from dead group by consumerGroup, state, attempts
order by consumerGroup, state, attempts
"""
AGES: Final = """
select consumerGroup, state, case when seconds < 3600 then 'under an hour' when seconds < 86400 then 'under a day'
       when seconds < 604800 then 'under a week' else 'a week or more' end as age, count(*) as messages
from (select consumerGroup, state, {now} - unix_micros(died) / 1e6 as seconds from dead) as aged
group by 1, 2, 3 order by 1, 2, min(seconds)
"""
NEWEST: Final = """
select * from dead order by died desc, storedIn, brokerName nulls first, queueId, queueOffset desc limit {limit}
"""


def build(engine: Engine, source: MessageInput, wanted: Wanted, *, limit: int = 50) -> Report:
    """The report; with `wanted.send_back` the copies are sent before it returns."""
    existing = all_topics(source)
    topics = dead_topics(existing, wanted)
    if not topics:
        asked = f"none of {', '.join(wanted.groups)}" if wanted.groups else "no group"
        meant = "".join(did_you_mean(name, _groups_in(existing)) for name in wanted.groups[:1])
        return Report(
            "Dead letters", f"In {source.name}: {asked} has a dead letter topic{meant or '.'}", [], []
        )
    engine.open_messages("messages", msgspec.structs.replace(source, topics=",".join(topics)), COLUMNS)
    group, stored_origin = placed_sql(topics, existing)
    of_origin = "true" if wanted.origin is None else f"originTopic = {sql_text(wanted.origin)}"
    engine.keep(
        "dead",
        DEAD.format(
            condition=wanted.condition(source),
            group=group,
            origin=ORIGIN_SQL,
            stored_origin=stored_origin,
            of_origin=of_origin,
        ),
    )
    sections = [
        Section(
            "groups", "Dead letters by group, origin and tag", engine.sql(GROUPS.format(now=time.time()))
        ),
        Section("attempts", "By attempts", engine.sql(ATTEMPTS)),
        Section("ages", "By age", engine.sql(AGES.format(now=time.time()))),
        Section("messages", "The newest", engine.sql(NEWEST.format(limit=limit))),
    ]
    findings = [
        f"{row['consumerGroup']}: {counted(row['n'], 'dead message')} of {row['originTopic'] or 'an unknown topic'}"
        for row in engine.sql(
            "select consumerGroup, originTopic, count(*) as n from dead where state = 'dead' "
            "group by consumerGroup, originTopic order by n desc, consumerGroup, originTopic nulls first limit 20"
        ).rows()
    ]
    lead = f"In {source.name}."
    if wanted.send_back is not None:
        from .dlq_resend import SENT, send_back

        counts = send_back(source, wanted, [topic for topic in topics if is_dlq_topic(topic)], existing)
        sections.append(counts)
        is_any_sent = any(row["what"] == SENT and row["messages"] for row in counts.frame.rows())
        lead += _words_of(source, wanted, is_any_sent=is_any_sent)
    elif findings:
        lead += " Nothing was sent: --send-back origin or --send-back group sends copies."
    return Report("Dead letters", lead, sections, findings)


def _words_of(source: MessageInput, wanted: Wanted, *, is_any_sent: bool) -> str:
    """What became of the copies."""
    if wanted.is_dry:
        return " Nothing was sent, because of --dry-run."
    if not is_any_sent:
        return " No copies were sent: there was nothing to send, or all of it was sent before."
    if wanted.is_of_all(source):
        return " Copies were sent, and will not be sent again without --again."
    return " Copies were sent. Not all dead letters were wanted, so a second run sends these again."


def all_topics(source: MessageInput) -> list[str]:
    """The topics of the store, or of the brokers."""
    if source.store is not None:
        return topics_of_store(source.store)
    from ...tables.brokers.broker_client import BrokerClient

    assert source.namesrv_addr is not None
    with BrokerClient(source.namesrv_addr, source.access).closing() as client:
        return sorted(client.topics(TIMEOUT_MS))


def dead_topics(existing: Collection[str], wanted: Wanted) -> list[str]:
    """The dead letter topics of the groups, and their retry topics if those are shown."""
    chosen = [
        topic
        for topic in existing
        if is_dlq_topic(topic) or (wanted.is_retrying_shown and is_retry_topic(topic))
    ]
    if not wanted.groups:
        return chosen
    return [topic for topic in chosen if group_of(topic, existing)[0] in wanted.groups]


def _groups_in(topics: Collection[str]) -> list[str]:
    """The groups that have a dead letter topic or a retry topic."""
    return sorted(
        {group_of(topic, topics)[0] for topic in topics if is_dlq_topic(topic) or is_retry_topic(topic)}
    )


def check(source: MessageInput, wanted: Wanted) -> None:
    """`OptionError` for what cannot be done."""
    source.check()
    if source.topics is not None:
        raise OptionError("--topics", ": dead letters are chosen by --groups and --origin")
    if wanted.send_back is None and (wanted.is_dry or wanted.sends_again):
        raise OptionError("--dry-run and --again", "are for --send-back")
    if wanted.send_back is not None and source.store is not None:
        raise OptionError("--send-back", "needs --namesrv: a store is only read")


@click.command("dlq")
@input_options
@time_options
@click.option("--groups", "--group", metavar="G[,G]", help="Consumer groups.  [default: all]")
@click.option("--origin", metavar="TOPIC", help="Dead letters that came from this topic.")
@click.option("--tag", metavar="TAG", help="Dead letters with this tag.")
@click.option(
    "--attempts",
    "least_attempts",
    type=click.IntRange(0),
    metavar="N",
    help="Dead letters after N attempts or more.",
)
@click.option(
    "--retrying", "is_retrying_shown", is_flag=True, help="Show messages that wait for a retry, too."
)
@click.option(
    "--send-back", type=click.Choice([ORIGIN, GROUP]), help="Send copies to the topic, or to the group."
)
@click.option(
    "--again", "sends_again", is_flag=True, help="With --send-back: also what was sent back before."
)
@click.option("--dry-run", "is_dry", is_flag=True, help="With --send-back: only count what would be sent.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="List so many messages.")
@engine_options
def main(*, limit: int, groups: str | None, source: MessageInput, **options: Any) -> None:
    """Show dead letters, and send them back."""
    fields = {name: options.pop(name) for name in Wanted.__struct_fields__ if name != "groups"}
    wanted = Wanted(groups=tuple(names_in(groups)), **fields)
    run_on_engine(
        "dlq",
        lambda engine: build(engine, source, wanted, limit=limit),
        source,
        check=lambda: check(source, wanted),
        **options,
    )
