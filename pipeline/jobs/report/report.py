"""A job's result, and where it is written: tables on the terminal, JSON, Parquet, HTML.

A job's `build` returns a `Report`: tables with names, and findings, a sentence each. How a job runs is
`answers/run.py`.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec

from ...errors import PipelineError
from ...tables.files.locations import absolute
from ..sql.engine import Frame
from . import page as html_page
from .output_folders import replaced, write_mode
from .terminal import console, print_table

SHOWN_ROWS: Final = 50
"""Rows of a table on the terminal and in HTML; JSON and Parquet have all."""


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
    hidden_findings: int = 0
    """Findings that are rows of a table and no sentence, because there are many of their kind."""


class Outputs(msgspec.Struct, frozen=True):
    """Where results are written besides the terminal."""

    json_file: str | None = None
    parquet_folder: str | None = None
    html_file: str | None = None
    is_quiet: bool = False


ShownRows = tuple[list[dict[str, Any]], int]
"""The first rows of a table as plain values, `SHOWN_ROWS` at most, and how many rows it has."""


def write(report: Report, outputs: Outputs) -> None:
    """Write a report to the terminal and to the files in `outputs`. Only the rows that people see are held here."""
    tables = {section.name: shown_rows(section.frame) for section in report.sections}
    if outputs.parquet_folder is not None:
        whole = absolute(outputs.parquet_folder)
        folders = [inside_folder(whole, section.name) for section in report.sections]
        for folder in folders:
            write_mode("--parquet", folder)
        for section, folder in zip(report.sections, folders, strict=True):
            with replaced("--parquet", folder) as mode:
                section.frame.write(folder, mode)
    if outputs.json_file is not None:
        with (
            writing("--json-file", outputs.json_file),
            open(outputs.json_file, "w", encoding="utf-8") as file,
        ):
            _write_json(report, file)
    if outputs.html_file is not None:
        with writing("--html", outputs.html_file):
            Path(outputs.html_file).write_text(html(report, tables), encoding="utf-8")
    if not outputs.is_quiet:
        _print(report, tables, outputs)


@contextmanager
def writing(option: str, path: str) -> Iterator[None]:
    """`PipelineError` with option and file if it cannot be written: a full disk names neither."""
    try:
        yield
    except OSError as error:
        raise PipelineError(f"{option} {path}: {error.strerror or error}") from error


def inside_folder(folder: str, name: str) -> str:
    """A name inside a folder, which may be any URL that Spark knows, such as s3a://bucket/path."""
    return f"{folder.rstrip('/')}/{name}" if "://" in folder else str(Path(folder) / name)


def shown_rows(frame: Frame) -> ShownRows:
    """What people see of a table. Its rows are counted only if they are too many to show."""
    rows = frame.rows(SHOWN_ROWS + 1)
    return rows[:SHOWN_ROWS], len(rows) if len(rows) <= SHOWN_ROWS else frame.count()


def _write_json(report: Report, file: TextIO) -> None:
    """One object, a line for each row, so that no table is held as a whole."""
    file.write(f'{{"title": {json.dumps(report.title)},\n"findings": {json.dumps(report.findings, indent=1)}')
    for section in report.sections:
        file.write(f",\n{json.dumps(section.name)}: [")
        for number, row in enumerate(section.frame.each()):
            file.write(",\n " if number else "\n ")
            file.write(json.dumps(row, default=_json_value))
        file.write("]")
    file.write("}\n")


def html(report: Report, tables: dict[str, ShownRows]) -> str:
    """The report as one self-contained page."""
    parts: list[str] = []
    if report.findings is not None:
        parts += [html_page.heading("Findings"), html_page.findings(report.findings)]
        parts += [html_page.paragraph(f"{findings_line(report)}.")] if report.hidden_findings else []
    parts += report.drawings
    for section in report.sections:
        rows, count = tables[section.name]
        parts.append(html_page.heading(section.title))
        if section.note and rows:
            parts.append(html_page.paragraph(section.note))
        parts.append(html_page.table(rows))
        if count > len(rows):
            parts.append(html_page.paragraph(f"{count - len(rows):,} more rows are not shown."))
    return html_page.page(report.title, report.lead, parts)


def _print(report: Report, tables: dict[str, ShownRows], outputs: Outputs) -> None:
    from rich.text import Text

    terminal = console()
    terminal.print(Text.assemble((report.title, "bold"), "  ", report.lead))
    for section in report.sections:
        rows, count = tables[section.name]
        print_table(terminal, section.title, rows)
        if count > len(rows):
            terminal.print(f"{count - len(rows):,} more rows")
    if report.findings is not None:
        terminal.print(f"\n{findings_line(report)}")
        for text in report.findings:
            terminal.print(f"  {text}")
    if tables:
        terminal.print("\nRows: " + ", ".join(f"{name} {count:,}" for name, (_, count) in tables.items()))
    for path in (outputs.json_file, outputs.parquet_folder, outputs.html_file):
        if path is not None:
            terminal.print(f"Written: {path}")


def findings_line(report: Report) -> str:
    """How many findings there are, and how many of them are not listed."""
    listed = len(report.findings or [])
    hidden = report.hidden_findings
    if not hidden:
        return counted(listed, "finding") if listed else "Nothing found."
    return f"{counted(listed + hidden, 'finding')}; {hidden:,} of them are only in the tables"


def counted(count: int, noun: str) -> str:
    """1 finding, 2 findings."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)
