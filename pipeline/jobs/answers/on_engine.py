"""How a job in SQL runs: on DuckDB in this process, or on Spark; and a job without an engine. Exit codes: `run.py`.

On a terminal, what share of a table was read, and the rows so far, are printed while DuckDB works.
"""

import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import click

from ...errors import PathError
from ...tables.files.locations import is_url
from ...tables.files.remote_files import file_system
from ...tables.files.store_topics import missing_topics
from ..report.report import Outputs, Report, write
from ..sql.engine import ENGINES, SPARK, Engine, check_arrow, choose_engine
from ..sql.message_input import MessageInput
from .run import check_memory, exit_on_user_error, output_options, run_in_process, run_job

PRINT_SECONDS = 0.25


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every job, and `--engine`."""
    return click.option(
        "--engine",
        type=click.Choice(ENGINES),
        help="Where the job runs: duckdb in this process, or spark.  [default: spark with --master or --conf, and "
        "under spark-submit; else duckdb]",
    )(output_options(command))


def run_on_engine(
    name: str,
    build: Callable[[Engine], Report],
    *sources: MessageInput,
    engine: str | None,
    check: Callable[[], object] | None = None,
    fails_on_findings: bool = True,
    **options: Any,
) -> None:
    """Run a job on its engine, and write its report.

    `sources` are what it reads. `check` raises `OptionError` for what can be checked without an engine; by default each
    source must exist and have topics.
    """

    def check_sources() -> None:
        for source in sources:
            source.check_topics()

    check = check or check_sources
    with exit_on_user_error(is_verbose=options.get("is_verbose", False)):
        master, settings = options.get("master"), options.get("settings")
        is_spark = bool(master or settings or os.environ.get("PYSPARK_GATEWAY_PORT"))
        chosen = choose_engine(engine, is_spark=is_spark)
        check()
        for source in sources:
            note_missing_topics(source)
            check_brokers(source)
    if chosen == SPARK:
        from ..sql.spark_engine import SparkEngine

        with ExitStack() as ends:
            run_job(
                name,
                lambda spark: build(ends.enter_context(SparkEngine(spark))),
                check=check,
                before_stop=ends.close,
                fails_on_findings=fails_on_findings,
                **options,
            )
        return

    def run(outputs: Outputs) -> Report:
        from ..sql.duckdb_engine import DuckEngine

        memory = options.get("memory")
        check_memory(memory)
        check_parquet_url(outputs.parquet_folder)
        with (
            RowCount(is_shown=not outputs.is_quiet) as count,
            DuckEngine(memory=memory, seen=count.add, progress=count.show) as here,
        ):
            report = build(here)
            for section in report.sections:
                section.frame.count()  # computes the table, while progress is shown
            count.clear()
            write(report, outputs)
        return report

    run_in_process(run, fails_on_findings=fails_on_findings, **options)


def check_brokers(source: MessageInput) -> None:
    """`SourceUnreachable` or `TopicMissing` unless the brokers of a source answer; a store has none."""
    from ...tables.brokers.reachable import check_reachable

    if source.namesrv_addr is not None:
        check_reachable(source.namesrv_addr, source.topic_names(), source.access)


def note_missing_topics(source: MessageInput) -> None:
    """Name the topics that a store does not have: a misspelt one would look like one without messages."""
    for sentence in missing_topics(source.folders, source.topic_names()):
        click.echo(f"pocketmq: {sentence}", err=True)


def run_without_engine(name: str, build: Callable[[Outputs], Report], **options: Any) -> None:
    """Run a job that needs no engine, and write its report. Options of Spark have no effect, which is said."""
    given = [
        option
        for option, field in (("--master", "master"), ("--memory", "memory"), ("--conf", "settings"))
        if options.get(field)
    ]
    if given:
        click.echo(f"pocketmq: {name} needs no engine: no effect of {', '.join(given)}", err=True)

    def run(outputs: Outputs) -> Report:
        check_arrow()
        report = build(outputs)
        write(report, outputs)
        return report

    run_in_process(run, **options)


def check_parquet_url(folder: str | None) -> None:
    """`OptionError` for a URL that Arrow, which writes the tables, does not know."""
    if folder is not None and is_url(folder):
        try:
            file_system(folder)
        except PathError as error:
            raise error.named("--parquet") from error


class RowCount:
    """Prints what share of a table was read and how many rows a query has used, on a terminal."""

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown and sys.stderr.isatty()
        self._rows = 0
        self._share = 0.0
        self._begun = self._printed = time.monotonic()

    def __enter__(self) -> "RowCount":
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def add(self, rows: int) -> None:
        """Count more rows."""
        self._rows += rows
        self.show(self._share)

    def show(self, share: float) -> None:
        """Show the share of a table that was read, from 0 to 1."""
        self._share = share
        now = time.monotonic()
        if self._is_shown and now - self._printed >= PRINT_SECONDS:
            self._printed = now
            print(f"\r\x1b[K{share:4.0%} read, {self._rows:,} rows", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._is_shown and self._printed != self._begun:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._begun = self._printed
