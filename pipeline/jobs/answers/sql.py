"""Your own query: `pocketmq pipeline sql "select topic, count(*) from messages group by 1" --store DIR`.

    messages           with --store or --namesrv and --topics; with --damaged also what is not a record (column status)
    consumequeue       with --store: the units of the consume queues, of one store
    consumer_offsets   with --store: the offsets of the groups, of one store
    journal            with --journal

Only the columns that the text uses are decoded (DuckDB). The text is in the engine's own SQL.
"""

from typing import Any, Final

import click

from ..report.report import Report, Section
from ..sql.engine import Engine
from ..sql.message_input import MessageInput
from .inputs import inputs_of_several_brokers
from .on_engine import engine_options, run_on_engine

DAMAGED: Final = {"onCorrupt": "report"}


def build(
    engine: Engine, text: str, source: MessageInput, *, journal: str | None = None, shows_damage: bool = False
) -> Report:
    """The report: one table, the rows of the query."""
    from ...tables.records.columns import MESSAGE_COLUMNS, STORE_COLUMNS

    if source.folders:
        options = DAMAGED if shows_damage else {}
        engine.open_messages("messages", source, tuple(STORE_COLUMNS), **options)
    if source.store is not None:
        engine.open_store_table("consumequeue", source, "consumequeue")
        engine.open_store_table("consumer_offsets", source, "consumerOffsets")
    if source.namesrv_addr is not None:
        engine.open_messages("messages", source, tuple(MESSAGE_COLUMNS))
    if journal is not None:
        engine.open_journal("journal", journal)
    return Report("SQL", text.strip(), [Section("rows", "Rows", engine.sql(text))])


def check(source: MessageInput, journal: str | None) -> None:
    """`OptionError` unless there is a table."""
    from ...tables.files.journal_rows import journal_paths

    journal_paths([journal] if journal is not None else [], "--journal")
    if not source.folders and source.namesrv_addr is None and journal is not None:
        return
    source.check_topics()


@click.command("sql")
@click.argument("text")
@inputs_of_several_brokers
@click.option("--journal", metavar="DIR", help="Read a broker's journal too.")
@click.option("--damaged", "shows_damage", is_flag=True, help="With --store: damage is a row, not an error.")
@engine_options
def main(*, text: str, journal: str | None, shows_damage: bool, source: MessageInput, **options: Any) -> None:
    """Run a query over messages, consume queues, offsets or a journal."""
    run_on_engine(
        "sql",
        lambda engine: build(engine, text, source, journal=journal, shows_damage=shows_damage),
        source,
        check=lambda: check(source, journal),
        **options,
    )
