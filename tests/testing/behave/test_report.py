"""A report is a file that is read again, and a table of clients side by side."""

from pathlib import Path

import pytest
from pocketmq.cli.behave import as_text
from pocketmq.testing.behave.measures import Measures
from pocketmq.testing.behave.run import Played, Report, ReportError, read_report, write_report

from conformance.behaviour.document import as_markdown


def report(client: str, **measures: Measures) -> Report:
    played = {name: Played(about=f"{name}!", role="both", measures=one) for name, one in measures.items()}
    return Report(client=client, command=["run"], scenarios=played)


QUICK = Measures(seconds=1.0, sent=20, sends_refused={"SYSTEM_BUSY": 2}, longest_send_gap_ms=40)
SLOW = Measures(
    seconds=9.0,
    sent=19,
    longest_send_gap_ms=2500,
    lost=1,
    lost_messages=["id-3 (orders of b0, queue 1, offset 3, group g)"],
    killed=1,
    not_reached=["sent 20: 19 of 20"],
)


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = report("mine", calm=QUICK, busy=SLOW)
    write_report(tmp_path / "mine.json", written)
    assert read_report(tmp_path / "mine.json") == written


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, r"cannot read .*mine.json: No such file"),
        ("{", r"mine.json is no report of pocketmq behave: "),
        ("{}", r"mine.json is no report of pocketmq behave: .*client"),
        (
            '{"client": "x", "command": [], "scenarios": {}, "colour": 1}',
            "no report of pocketmq behave: .*colour",
        ),
    ],
)
def test_a_file_that_is_no_report_is_named(tmp_path: Path, text: str | None, complaint: str) -> None:
    path = tmp_path / "mine.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ReportError, match=complaint) as caught:
        read_report(path)
    assert "\n" not in str(caught.value)


def test_a_report_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"cannot write .*: No such file or directory"):
        write_report(tmp_path / "no" / "mine.json", report("mine"))


def test_clients_stand_side_by_side_without_figures_that_nobody_has() -> None:
    text = as_text([report("mine", calm=QUICK), report("theirs", calm=SLOW, busy=SLOW)])
    assert text == (
        "calm: calm!\n"
        "                 mine           theirs\n"
        "  sent           20             19\n"
        "  sends refused  2 SYSTEM_BUSY  -\n"
        "  longest gap    40 ms          2.5 s\n"
        "  lost           -              1\n"
        "  killed         -              1\n"
        "  not reached    -              sent 20: 19 of 20\n"
        "\n"
        "busy: busy!\n"
        "               theirs\n"
        "  sent         19\n"
        "  longest gap  2.5 s\n"
        "  lost         1\n"
        "  killed       1\n"
        "  not reached  sent 20: 19 of 20"
    )


def test_a_document_has_a_row_for_each_client() -> None:
    text = as_markdown([report("mine", calm=QUICK), report("theirs", calm=SLOW)])
    assert text.splitlines()[:6] == [
        "## calm",
        "",
        "calm!",
        "",
        "| client | sends refused | longest gap | lost | killed | not reached |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    assert "| mine | 2 SYSTEM_BUSY | 40 ms | 0 | 0 |  |" in text


def test_what_a_program_should_not_do_is_said() -> None:
    assert report("mine", calm=QUICK).trouble() == []
    assert report("mine", busy=SLOW).trouble() == [
        "busy: 1 messages were lost: id-3 (orders of b0, queue 1, offset 3, group g)",
        "busy: not reached: sent 20: 19 of 20",
        "busy: the program did not end after SIGTERM",
    ]
