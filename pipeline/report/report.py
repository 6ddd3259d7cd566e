"""A job's result, and where it is written: tables on the terminal, JSON, Parquet, HTML.

A job's `build` returns a `Report`: data frames with names, and findings, a sentence each. How a job runs is
`jobs/run.py`.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from . import page as html_page
from .terminal import console, print_table

SHOWN_ROWS: Final = 50
"""Rows of a table on the terminal and in HTML; JSON and Parquet have all."""


class Frame(Protocol):
    """The part of a Spark data frame that a report uses."""

    def collect(self) -> list[Any]: ...

    @property
    def write(self) -> Any: ...


class Section(msgspec.Struct):
    """One table of a report."""

    name: str
    title: str
    frame: Frame
    note: str = ""
    """What the columns mean; printed on the page."""


class Report(msgspec.Struct):
    """A job's result. `findings` is None for a job that only reports; `drawings` are HTML, placed before the tables."""

    title: str
    lead: str
    sections: list[Section]
    findings: list[str] | None = None
    drawings: list[str] = msgspec.field(default_factory=list)


class Outputs(msgspec.Struct, frozen=True):
    """Where results are written besides the terminal."""

    json_file: str | None = None
    parquet_folder: str | None = None
    html_file: str | None = None
    is_quiet: bool = False


def write(report: Report, outputs: Outputs) -> None:
    """Write a report to the terminal and to the files in `outputs`."""
    tables = {section.name: rows_of(section.frame) for section in report.sections}
    if outputs.parquet_folder is not None:
        for section in report.sections:
            section.frame.write.mode("overwrite").parquet(str(Path(outputs.parquet_folder) / section.name))
    if outputs.json_file is not None:
        document = {"title": report.title, "findings": report.findings, **tables}
        Path(outputs.json_file).write_text(
            json.dumps(document, default=_json_value, indent=1) + "\n", encoding="utf-8"
        )
    if outputs.html_file is not None:
        Path(outputs.html_file).write_text(html(report, tables), encoding="utf-8")
    if not outputs.is_quiet:
        _print(report, tables, outputs)


def rows_of(frame: Frame) -> list[dict[str, Any]]:
    """All rows as plain values."""
    return [row.asDict(recursive=True) for row in frame.collect()]


def html(report: Report, tables: dict[str, list[dict[str, Any]]]) -> str:
    """The report as one self-contained page."""
    parts: list[str] = []
    if report.findings is not None:
        parts += [html_page.heading("Findings"), html_page.findings(report.findings)]
    parts += report.drawings
    for section in report.sections:
        rows = tables[section.name]
        parts.append(html_page.heading(section.title))
        if section.note and rows:
            parts.append(html_page.paragraph(section.note))
        parts.append(html_page.table(rows[:SHOWN_ROWS]))
        if len(rows) > SHOWN_ROWS:
            parts.append(html_page.paragraph(f"{len(rows) - SHOWN_ROWS:,} more rows are not shown."))
    return html_page.page(report.title, report.lead, parts)


def _print(report: Report, tables: dict[str, list[dict[str, Any]]], outputs: Outputs) -> None:
    from rich.text import Text

    terminal = console()
    terminal.print(Text.assemble((report.title, "bold"), "  ", report.lead))
    for section in report.sections:
        rows = tables[section.name]
        print_table(terminal, section.title, rows[:SHOWN_ROWS])
        if len(rows) > SHOWN_ROWS:
            terminal.print(f"{len(rows) - SHOWN_ROWS:,} more rows")
    if report.findings is not None:
        terminal.print(
            f"\n{counted(len(report.findings), 'finding')}" if report.findings else "\nNothing found."
        )
        for text in report.findings:
            terminal.print(f"  {text}")
    terminal.print("\nRows: " + ", ".join(f"{name} {len(rows):,}" for name, rows in tables.items()))
    for path in (outputs.json_file, outputs.parquet_folder, outputs.html_file):
        if path is not None:
            terminal.print(f"Written: {path}")


def counted(count: int, noun: str) -> str:
    """1 finding, 2 findings."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    return str(value)
