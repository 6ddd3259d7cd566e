"""Messages by key, id, tag, text and time: `pocketmq pipeline find --store DIR --key 4711`.

All conditions that are given must hold. A key matches one of the message's keys, which are separated by blanks. An id
is a message id (UNIQ_KEY) or an offset message id. A text matches anywhere in the body, as UTF-8. Delayed messages and
half messages are found in their system topics as well. Exit code 1 says that there is a message.
"""

from typing import Any, Final

import click
import msgspec

from ...errors import OptionError
from ..report.report import Report, Section, counted
from ..sql.engine import Engine, naming
from ..sql.message_input import MessageInput, sql_text
from .inputs import inputs_of_several_brokers, time_options
from .on_engine import engine_options, run_on_engine

SHOWN: Final = (
    *("topic", "brokerName", "queueId", "queueOffset", "storeTimestamp", "tags", "keys", "msgId"),
    *("reconsumeTimes", "storeSize", "body"),
)
COLUMNS: Final = (*SHOWN, "offsetMsgId")
ORDER: Final = "order by storeTimestamp, topic, brokerName nulls first, queueId, queueOffset"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for."""

    message_key: str | None = None
    message_id: str | None = None
    tag: str | None = None
    text: str | None = None
    where: str | None = None

    def condition(self) -> str:
        """SQL. `OptionError` if nothing is wanted."""
        conditions = []
        if self.message_key is not None:
            conditions.append(f"array_contains(split(keys, ' '), {sql_text(self.message_key)})")
        if self.message_id is not None:
            # Official tools print ids in upper case; a client may have made its own in any case.
            one, upper = sql_text(self.message_id), sql_text(self.message_id.upper())
            conditions.append(f"(msgId in ({one}, {upper}) or offsetMsgId = {upper})")
        if self.tag is not None:
            conditions.append(f"tags = {sql_text(self.tag)}")
        if self.text is not None:
            conditions.append(f"has_bytes(body, {sql_text(self.text)})")
        if self.where is not None:
            conditions.append(f"({self.where})")
        return " and ".join(conditions) or "true"


def build(engine: Engine, source: MessageInput, wanted: Wanted, *, limit: int = 100) -> Report:
    """The report, with the first `limit` messages by store time."""
    engine.open_messages("messages", source, COLUMNS)
    condition = f"{wanted.condition()} and {source.time_condition()}"
    with naming(f"--where {wanted.where}" if wanted.where is not None else ""):
        engine.keep(
            "found", f"select {', '.join(SHOWN)} from messages where {condition} {ORDER} limit {limit + 1}"
        )
    table = engine.sql(f"select * from found {ORDER} limit {limit}")
    count = engine.sql("select * from found").count()
    more = f" More than {limit:,} messages match; --limit shows more." if count > limit else ""
    findings = [f"{counted(min(count, limit), 'message')} found"] if count else []
    return Report("Find", f"In {source.name}.{more}", [Section("messages", "Messages", table)], findings)


def check(source: MessageInput, wanted: Wanted) -> None:
    """`OptionError` unless there is something to look for."""
    source.check_topics()
    if wanted == Wanted() and source.since_ms is None and source.until_ms is None:
        raise OptionError("say what to find", ": --key, --id, --tag, --text, --where, --since or --until")


@click.command("find")
@inputs_of_several_brokers
@time_options
@click.option("--key", "message_key", metavar="KEY", help="One of the message's keys.")
@click.option("--id", "message_id", metavar="ID", help="Message id or offset message id.")
@click.option("--tag", metavar="TAG", help="The message's tag.")
@click.option("--text", metavar="TEXT", help="A text anywhere in the body.")
@click.option("--where", metavar="SQL", help='A condition over the columns, such as "reconsumeTimes > 3".')
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="Show so many messages."
)
@engine_options
def main(*, limit: int, source: MessageInput, **options: Any) -> None:
    """Find messages by key, id, tag, text or time."""
    wanted = Wanted(**{name: options.pop(name) for name in Wanted.__struct_fields__})
    run_on_engine(
        "find",
        lambda engine: build(engine, source, wanted, limit=limit),
        source,
        check=lambda: check(source, wanted),
        **options,
    )
