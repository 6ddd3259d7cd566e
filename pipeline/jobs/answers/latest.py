"""The last message of each key, as a table: `pocketmq pipeline latest --store DIR --topics Prices`.

What a compacted topic would hold. The last one is that with the latest store time, of a queue that with the highest
offset. `--by` is an SQL expression instead of the keys, such as "properties['orderId']". Brokers refuse a message
without a body, so a deleted key is marked by a tag: a key whose last message has `--deleted-by TAG` is left out.

The last place of each key is found from heads and properties. Bodies are read of those messages alone. A place is a
position in the log: a topic that was deleted and created again has each queue offset twice.
"""

from typing import Any, Final

import click

from ..report.report import Report, Section
from ..sql.engine import Engine, naming
from ..sql.message_input import MessageInput, sql_text
from .inputs import IS_SYSTEM_TOPIC, inputs_of_several_brokers, time_options
from .on_engine import engine_options, run_on_engine

COLUMNS: Final = (
    *("topic", "brokerName", "queueId", "queueOffset", "physicalOffset", "keys", "tags", "properties"),
    *("body", "storeTimestamp", "msgId"),
)
KEYS: Final = "keys"
LAST: Final = """
select topic, brokerName, queueId, queueOffset, physicalOffset, key, versions from (
    select topic, brokerName, queueId, queueOffset, physicalOffset, key,
           count(*) over (partition by topic, key) as versions,
           row_number() over (
               partition by topic, key order by storeTimestamp desc, queueOffset desc, brokerName, physicalOffset desc
           ) as place
    from (
        select topic, coalesce(brokerName, '') as brokerName, queueId, queueOffset, physicalOffset, storeTimestamp,
               {by} as key
        from messages where not ({is_system}) and {times}
    ) as keyed
    where key is not null and key <> ''
) as numbered
where place = 1
"""
LATEST: Final = """
select l.topic as topic, l.key as key, m.body as body, m.tags as tags, l.versions as versions,
       m.storeTimestamp as storeTimestamp, m.brokerName as brokerName, l.queueId as queueId,
       l.queueOffset as queueOffset, m.msgId as msgId
from messages m join last_places l
    on m.physicalOffset = l.physicalOffset and coalesce(m.brokerName, '') = l.brokerName and m.topic = l.topic
where {kept}
order by l.topic, l.key
"""


def build(engine: Engine, source: MessageInput, *, by: str = KEYS, deleted_by: str | None = None) -> Report:
    """The report; `by` is an SQL expression over the columns of messages."""
    engine.open_messages("messages", source, COLUMNS)
    with naming(f"--by {by}"):
        engine.keep(
            "last_places", LAST.format(by=by, is_system=IS_SYSTEM_TOPIC, times=source.time_condition())
        )
    kept = "true" if deleted_by is None else f"coalesce(m.tags, '') <> {sql_text(deleted_by)}"
    table = engine.sql(LATEST.format(kept=kept))
    return Report(
        "Latest", f"By {by}, in {source.name}.", [Section("latest", "Last message of each key", table)]
    )


@click.command("latest")
@inputs_of_several_brokers
@time_options
@click.option("--by", default=KEYS, show_default=True, metavar="SQL", help="What the key is.")
@click.option("--deleted-by", metavar="TAG", help="Leave out keys whose last message has this tag.")
@engine_options
def main(*, by: str, deleted_by: str | None, source: MessageInput, **options: Any) -> None:
    """List the last message of each key."""
    run_on_engine(
        "latest", lambda engine: build(engine, source, by=by, deleted_by=deleted_by), source, **options
    )
