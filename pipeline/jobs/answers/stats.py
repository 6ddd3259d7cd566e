"""What fills a store or a topic: `pocketmq pipeline stats --store DIR`.

Bytes are those in the log: body, properties and head. Bodies are not read. A store is counted inside the scan
(`tables/files/aggregates.py`), unless `--since` or `--until` cut a minute.
"""

from typing import Any, Final

import click

from ..report.report import Report, Section
from ..sql.engine import Engine
from ..sql.message_input import MessageInput
from .inputs import inputs_of_several_brokers, time_options
from .on_engine import engine_options, run_on_engine

COLUMNS: Final = ("topic", "brokerName", "queueId", "tags", "storeTimestamp", "storeSize")
MINUTES: Final = """
select topic, brokerName, queueId, tags, date_trunc('minute', storeTimestamp) as minute, count(*) as messages,
       cast(sum(storeSize) as bigint) as bytes, max(storeSize) as largest,
       min(storeTimestamp) as first, max(storeTimestamp) as last
from messages where {times} group by 1, 2, 3, 4, 5
"""
SCANNED: Final = """
select topic, queueId, tags, minute, cast(sum(messages) as bigint) as messages, cast(sum(bytes) as bigint) as bytes,
       max(largest) as largest, min(firstTime) as first, max(lastTime) as last
from scanned group by 1, 2, 3, 4
"""
"""The same of a store: the scan hands over a few rows for each minute instead of its messages."""
SUMS: Final = "cast(sum(messages) as bigint) as messages, cast(sum(bytes) as bigint) as bytes"
TOPICS: Final = f"""
select topic, messages, bytes, cast(bytes as double) / messages as meanSize, largest, first, last,
       messages / greatest(seconds, 1.0) as messagesPerSecond
from (
    select topic, {SUMS}, max(largest) as largest, min(first) as first, max(last) as last,
           (unix_micros(max(last)) - unix_micros(min(first))) / 1e6 as seconds
    from minutes group by topic
) as sums
order by bytes desc, topic
"""
BY_MINUTE: Final = f"select topic, minute, {SUMS} from minutes group by topic, minute order by topic, minute"
BY_QUEUE: Final = f"""
select {{queue}}, messages, bytes,
       cast(messages as double) / sum(messages) over (partition by topic) as shareOfTopic
from (select {{queue}}, {SUMS} from minutes group by {{queue}}) as queues
order by {{queue}}
"""
BY_TAG: Final = (
    f"select topic, tags, {SUMS} from minutes group by topic, tags order by topic, messages desc, "
    "tags nulls first"
)
BY_KEY: Final = """
select topic, keys, count(*) as messages, cast(sum(storeSize) as bigint) as bytes
from messages where keys is not null and {times} group by topic, keys order by messages desc, topic, keys limit {count}
"""


def build(engine: Engine, source: MessageInput, *, keys: int = 0) -> Report:
    """The report; `keys` is how many keys to list."""
    is_counted_in_scan = source.store is not None and source.since_ms is None and source.until_ms is None
    if keys or not is_counted_in_scan:
        engine.open_messages("messages", source, (*COLUMNS, "keys") if keys else COLUMNS)
    if is_counted_in_scan:
        engine.open_store_table("scanned", source, "stats")
        engine.keep("minutes", SCANNED)
    else:
        engine.keep("minutes", MINUTES.format(times=source.time_condition()))
    queue = "topic, brokerName, queueId" if source.has_broker_names else "topic, queueId"
    sections = [
        Section("topics", "Topics", engine.sql(TOPICS)),
        Section("minutes", "By minute", engine.sql(BY_MINUTE)),
        Section("queues", "Queues", engine.sql(BY_QUEUE.format(queue=queue))),
        Section("tags", "Tags", engine.sql(BY_TAG)),
    ]
    if keys:
        text = BY_KEY.format(times=source.time_condition(), count=keys)
        sections.append(Section("keys", "Keys of most messages", engine.sql(text)))
    return Report("Statistics", f"Of {source.name}.", sections)


@click.command("stats")
@inputs_of_several_brokers
@time_options
@click.option(
    "--keys", type=click.IntRange(0), default=0, show_default=True, help="List so many keys of most messages."
)
@engine_options
def main(*, keys: int, source: MessageInput, **options: Any) -> None:
    """Count messages and bytes by topic, minute, queue and tag."""
    run_on_engine("stats", lambda engine: build(engine, source, keys=keys), source, **options)
