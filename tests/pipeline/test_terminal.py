"""Tables on a terminal: whole values on a narrow one, whole lines in a pipe; text is never read as markup."""

import io
import subprocess
import sys

import pytest
from pocketmq.pipeline.errors import PipelineError
from pocketmq.pipeline.jobs.report import terminal
from pocketmq.pipeline.jobs.report.report import Outputs, Report, write
from pocketmq.pipeline.jobs.report.terminal import FILE_WIDTH, print_table
from rich.console import Console

LONG = "192.0.2.2@consumer-a#" + "7" * 40
ROWS = [
    {"source": "journal", "client": LONG, "heldShare": 0.5, "rule": "[/red] the client decides"},
    {"source": "journal", "client": "b", "heldShare": None, "rule": "stored offset"},
]


def printed(width: int) -> str:
    out = io.StringIO()
    print_table(Console(file=out, width=width, highlight=False, markup=False), "Clients", ROWS)
    return out.getvalue()


def test_a_reader_that_closes_the_pipe_does_not_end_the_job() -> None:
    """Its exit code says what the job found, not that the output was cut."""
    program = """
from pocketmq.pipeline.jobs.report.report import Outputs, Report, write
import sys, time
sys.stdin.readline()
write(Report("Title", "Lead", [], ["one"] * 5_000), Outputs())
sys.exit(7)
"""
    ran = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert ran.stdin is not None
    assert ran.stdout is not None
    ran.stdout.close()
    ran.stdin.write(b"\n")
    ran.stdin.close()
    assert ran.stderr is not None
    with ran.stderr:
        assert (ran.stderr.read(), ran.wait(20)) == (b"", 7)


def test_a_full_disk_is_named_with_option_and_file() -> None:
    with pytest.raises(PipelineError, match="--json-file /dev/full: No space left on device"):
        write(Report("Title", "Lead", [], []), Outputs(json_file="/dev/full"))


def test_a_pipe_gets_a_line_for_each_row() -> None:
    lines = printed(FILE_WIDTH).splitlines()
    assert "All rows: source journal." in lines
    (row,) = [line for line in lines if LONG in line]
    assert "0.5" in row
    assert "[/red] the client decides" in row
    assert any("held share" in line for line in lines)


def test_a_terminal_that_is_too_narrow_gets_a_line_for_each_column() -> None:
    lines = printed(80).splitlines()
    assert f"client      {LONG}" in [line.rstrip() for line in lines]
    assert "held share  -" in [line.rstrip() for line in lines]


def test_an_output_that_is_not_a_terminal_has_no_width_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert terminal.console().width == FILE_WIDTH


def test_a_table_without_rows_says_so() -> None:
    out = io.StringIO()
    print_table(Console(file=out, width=80), "Clients", [])
    assert "none" in out.getvalue()
