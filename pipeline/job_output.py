"""What every job does with its result: a table on the terminal, JSON, Parquet, HTML; and how it meets the user.

A job's `build` returns a `Report`: data frames with names, and sentences about what needs somebody's eye. `job_command`
makes its command: options that all share, a session, one line and exit code 2 for what the user can mend, exit code 2
as well where an audit finds something. Next: the jobs, `audit_job.py` first.
"""

import json
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from . import html_report
from .errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOUND: Final = 2
USER_ERROR: Final = 2
SHOWN_ROWS: Final = 50
"""Rows of a table on the terminal and in HTML; JSON and Parquet have all."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Section(msgspec.Struct):
    """One table of a report."""

    name: str
    title: str
    frame: "DataFrame"


class Report(msgspec.Struct):
    """What a job found. `findings` is None where it only tells; `drawn` is HTML that stands before the tables."""

    title: str
    lead: str
    sections: list[Section]
    findings: list[str] | None = None
    drawn: list[str] = msgspec.field(default_factory=list)


class Outputs(msgspec.Struct, frozen=True):
    """Where results go besides the terminal."""

    json_file: str | None = None
    parquet_folder: str | None = None
    html_file: str | None = None
    is_quiet: bool = False


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every job."""
    for decorate in reversed(
        (
            click.option("--master", default="local[*]", show_default=True, help="Where Spark runs."),
            click.option("--memory", default="1g", show_default=True, help="Memory of the driver."),
            click.option("--json", "json_file", metavar="FILE", help="Write all tables as JSON."),
            click.option("--parquet", "parquet_folder", metavar="DIR", help="Write each table as Parquet."),
            click.option("--html", "html_file", metavar="FILE", help="Write a report for a browser."),
            click.option("--quiet", is_flag=True, help="Nothing on the terminal but errors."),
        )
    ):
        command = decorate(command)
    return command


def run_job(
    name: str,
    build: "Callable[[SparkSession], Report]",
    *,
    master: str,
    memory: str,
    json_file: str | None,
    parquet_folder: str | None,
    html_file: str | None,
    quiet: bool,
    fails_on_findings: bool = True,
    is_short: bool = False,
) -> None:
    """Run a job in a session of its own, and write what it found. `is_short`: its plans cost more than its rows."""
    try:
        from .session import pocketmq_session
    except ImportError:
        click.echo("pocketmq: the pipeline needs its extra: pip install 'pocketmq[spark]'", err=True)
        sys.exit(USER_ERROR)
    try:
        spark = pocketmq_session(
            f"pocketmq {name}",
            master=master,
            memory=memory,
            shows_progress=not quiet,
            is_quick_to_start=is_short,
        )
        try:
            report = build(spark)
            write(report, Outputs(json_file, parquet_folder, html_file, quiet))
        finally:
            spark.stop()
    except Exception as error:
        line = reason(error)
        if line is None:
            raise
        click.echo(f"pocketmq: {line}", err=True)
        sys.exit(USER_ERROR)
    if report.findings and fails_on_findings:
        sys.exit(FOUND)


def reason(error: BaseException) -> str | None:
    """The line of an error that is ours, also where Spark has wrapped it in its own; None for any other."""
    if isinstance(error, PipelineError | OSError):
        return str(error)
    for line in str(error).splitlines():
        kind, separator, text = line.strip().partition(": ")
        if separator and kind.startswith("pocketmq.pipeline.errors."):
            return text
    return None


def write(report: Report, outputs: Outputs) -> None:
    """To the terminal and wherever else it was asked for."""
    tables = {section.name: rows_of(section.frame) for section in report.sections}
    if outputs.parquet_folder is not None:
        for section in report.sections:
            section.frame.write.mode("overwrite").parquet(str(Path(outputs.parquet_folder) / section.name))
    if outputs.json_file is not None:
        whole = {"title": report.title, "findings": report.findings, **tables}
        Path(outputs.json_file).write_text(
            json.dumps(whole, default=_plain, indent=1) + "\n", encoding="utf-8"
        )
    if outputs.html_file is not None:
        Path(outputs.html_file).write_text(html(report, tables), encoding="utf-8")
    if not outputs.is_quiet:
        _print(report, tables)


def rows_of(frame: "DataFrame") -> list[dict[str, Any]]:
    """All rows as plain values."""
    return [row.asDict(recursive=True) for row in frame.collect()]


def html(report: Report, tables: dict[str, list[dict[str, Any]]]) -> str:
    """The report as one self-contained page."""
    parts: list[str] = []
    if report.findings is not None:
        parts += [html_report.heading("Findings"), html_report.findings(report.findings)]
    parts += report.drawn
    for section in report.sections:
        rows = tables[section.name]
        parts += [html_report.heading(section.title), html_report.table(rows[:SHOWN_ROWS])]
        if len(rows) > SHOWN_ROWS:
            parts.append(html_report.paragraph(f"{len(rows) - SHOWN_ROWS:,} more rows are not shown."))
    return html_report.page(report.title, report.lead, parts)


def _print(report: Report, tables: dict[str, list[dict[str, Any]]]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"[bold]{report.title}[/bold]  {report.lead}")
    for section in report.sections:
        rows = tables[section.name]
        if not rows:
            console.print(f"\n{section.title}: none")
            continue
        table = Table(title=section.title, title_justify="left")
        for name in rows[0]:
            table.add_column(name)
        for row in rows[:SHOWN_ROWS]:
            table.add_row(*(html_report.shown(value) for value in row.values()))
        console.print(table)
        if len(rows) > SHOWN_ROWS:
            console.print(f"{len(rows) - SHOWN_ROWS:,} more rows")
    _print_findings(console, report.findings)


def _print_findings(console: Any, findings: Sequence[str] | None) -> None:
    if findings is None:
        return
    console.print(f"\n{len(findings)} findings" if findings else "\nNothing found.")
    for text in findings:
        console.print(f"  {text}", markup=False, highlight=False)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    return str(value)
