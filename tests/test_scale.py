"""The measurement of how costs grow (`bench/scale.py`): it runs, and docs/scale.md has what it measured."""

import re
import runpy
import subprocess
import sys
from types import SimpleNamespace

import pytest

from documents import ROOT

page = SimpleNamespace(**runpy.run_path(str(ROOT / "bench" / "scale_page.py")))
"""By its path: the folder bench/ is no package here."""


def points(*values: float, row: str = "a send", side: str = "ours"):
    return [page.Point(row, side, 10 ** (2 + number), value) for number, value in enumerate(values)]


def test_the_exponent_is_the_slope_of_the_logarithms() -> None:
    assert page.exponent(points(5, 5, 5)) == pytest.approx(0)
    assert page.exponent(points(2, 20, 200)) == pytest.approx(1)
    assert page.exponent(points(1, 100, 10_000)) == pytest.approx(2)
    assert page.exponent(points(7)) == 0


def test_rows_are_sorted_by_whether_they_grow() -> None:
    found = [*points(5, 6, 5), *points(1, 10, 100, row="a listing"), *points(3, 30, row="a start")]
    found += points(4, 5, row="a start", side="official 5.5")
    text = page.tables(page.Run("now", "2 cores", (1.0, 2.0), tuple(found)))
    same, grows, beside = re.split(r"### .*\n", text)[1:]
    assert "| a send | 100 / 1,000 / 10,000 | 5.0 / 6.0 / 5.0 | 0.00 |" in same
    assert "| a listing | 100 / 1,000 / 10,000 | 1.0 / 10.0 / 100 | 1.00 |" in grows
    assert "| a start | official 5.5 | 100 / 1,000 | 4.0 / 5.0 | 0.10 |" in beside
    assert "a start" not in same + grows


def test_the_document_has_the_tables_of_the_file() -> None:
    """Fails after a measurement until `python -m bench.scale_page` has written the tables anew."""
    document = page.DOCUMENT.read_text(encoding="utf-8")
    assert page.replaced(document, page.tables(page.read())) == document


def test_what_a_client_does_costs_the_same_at_every_size() -> None:
    """Of the figures in the document: a row that grows is a listing, a start, work in turns or of another
    thread, or a send to more queues than may be open."""
    alone = (
        r"GET /api/|a start|memory|saving the offsets|another thread|ledger\.message|held pulls, every 5 s"
    )
    for (row, side), found in page.rows_of(page.read().points).items():
        if side == page.OURS and not re.search(rf"{alone}|in turns to queues|the whole process", row):
            assert page.exponent(found) <= page.FLAT, row


@pytest.mark.slow
def test_the_program_measures_every_row_at_small_sizes() -> None:
    names = "topics,groups,clients,offsets,timed,transactions,held,queues,pages,ledger"
    words = [sys.executable, "-m", "bench.scale", "--most", "10", "--only", names]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    rows = {line.split(" | ")[0] for line in ran.stdout.splitlines() if " | 1 / 10 | " in line}
    measured = {f"| {row}" for row, side in page.rows_of(page.read().points) if side == page.OURS}
    servers = {f"| {row}" for row in SERVER_ROWS}
    assert rows == measured - servers


SERVER_ROWS = (
    "a start, by topics, ms",
    "memory, by topics, MiB",
    "memory, by groups, MiB",
    "a send, the whole process",
    "creating a topic, the whole process",
    "a start after a kill, by messages, ms",
    "a start after a clean stop, by messages, ms",
)
"""Of server processes: too long for a test."""
