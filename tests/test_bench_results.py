"""The results file of the measurements and the table made of it (`bench/results.py`)."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

results = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / "bench" / "results.py")))
"""By its path: the folder bench/ is no package here."""


def measured(side: str, rate: float, *, row: str = "send", run: str = "1", us: float = 10.0):
    return results.Result(run, row, side, rate, us, (rate,), 1.0, "2 cores, 24 GiB", "")


def test_a_result_has_the_medians_of_its_rounds() -> None:
    found = results.result("run", "send", "ours", [(100.0, 30.0), (300.0, 10.0), (150.0, 11.0)], "why")
    assert (found.per_second, found.microseconds, found.rounds) == (150.0, 11.0, (100.0, 300.0, 150.0))
    assert found.remark == "why"
    assert found.machine.endswith("GiB")


def test_lines_are_added_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    first, second = measured("ours", 1.5), measured("official 4.9", 2.5)
    results.append([first], path)
    results.append([second], path)
    assert results.read(path) == [first, second]


@pytest.mark.parametrize("line", ["{", "[]", '{"run": "1"}', '{"rounds": [], "speed": 1}'])
def test_a_line_that_is_no_result_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "results.jsonl"
    results.append([measured("ours", 1.0)], path)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ValueError, match=r"results\.jsonl, line 2: not a result"):
        results.read(path)


def test_the_ratio_is_ours_to_the_official_side() -> None:
    sides = (("official 4.9", 50_000.0), ("official 5.5", 25_000.0), ("ours", 60_000.0))
    lines = results.table(measured(side, rate) for side, rate in sides).splitlines()
    assert lines[2] == "| send | 50,000 | 25,000 | 60,000 | 1.20 | 2.40 | 10.0 | 10.0 | 10.0 | 1 |"
    assert len(lines[0].split("|")) == len(lines[1].split("|")) == len(lines[2].split("|"))


def test_a_row_never_mixes_two_runs() -> None:
    found = [
        measured("official 4.9", 50.0, run="1"),
        measured("ours", 100.0, run="1"),
        measured("official 4.9", 80.0, run="2"),
        measured("ours", 40.0, run="2"),
        measured("ours", 999.0, run="3"),  # of a run that measured nothing beside it
        measured("official 4.9", 1.0, run="4"),  # of a run in which ours failed
    ]
    table = results.table(found)
    assert "| send | 80 |  | 40 | 0.50 |  |" in table
    assert "999" not in table
    assert "Run 1: 2, 2 cores" in table


def test_rows_of_different_runs_name_their_run() -> None:
    found = [
        measured(side, 10.0, row=row, run=run)
        for row, run in (("send", "2026-01-02 a"), ("batch", "2026-01-01 b"))
        for side in ("official 4.9", "ours")
    ]
    lines = results.table(found).splitlines()
    assert lines[2].endswith("| 2 |")
    assert lines[3].endswith("| 1 |")
    assert lines[-2].startswith("- Run 1: 2026-01-01 b")
    assert lines[-1].startswith("- Run 2: 2026-01-02 a")


def test_a_side_that_failed_leaves_its_cells_empty() -> None:
    assert "| send |  |  | 7 |  |  |  |  | 10.0 | 1 |" in results.table([measured("ours", 7.0)])


def test_the_limit_has_a_table_of_its_own() -> None:
    found = [measured(side, rate, row="limit") for side, rate in (("template", 80.0), ("ours", 20.0))]
    found += [measured(side, 10.0) for side in ("official 4.9", "ours")]
    table = results.table(found)
    assert "| limit | 80 | 20 | 0.25 | 10.0 | 10.0 | 1 |" in table
    assert table.index("| send |") < table.index("| limit |")


def test_only_the_text_between_the_marks_is_replaced() -> None:
    document = f"before\n{results.BEGIN}\nold\n{results.END}\nafter\n"
    assert results.replaced(document, "new") == f"before\n{results.BEGIN}\n\nnew\n\n{results.END}\nafter\n"
    with pytest.raises(ValueError, match="must hold"):
        results.replaced("no marks", "new")


def test_the_document_has_the_table_of_the_file() -> None:
    """Fails after a measurement until `python -m bench.results` has written the table anew."""
    document = results.DOCUMENT.read_text(encoding="utf-8")
    assert results.replaced(document, results.table(results.read())) == document
