"""A report holds the rows that people see; all the others pass through one at a time."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pocketmq.pipeline.jobs.report import output_folders
from pocketmq.pipeline.jobs.report.report import SHOWN_ROWS, Outputs, Report, Section, inside_folder, write


class FarFrame:
    """Rows of Spark, of which only so many may be held at once."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.written: list[tuple[str, str]] = []

    def rows(self, most: int | None = None) -> list[dict[str, Any]]:
        assert most is not None, "the table is collected whole"
        return list(itertools.islice(self.each(), most))

    def each(self) -> Iterator[dict[str, Any]]:
        return ({"number": number} for number in range(self._count))

    def count(self) -> int:
        return self._count

    def write(self, folder: str, mode: str) -> None:
        self.written.append((mode, folder))


@pytest.mark.parametrize("count", [0, SHOWN_ROWS, SHOWN_ROWS + 1, 10_000])
def test_a_table_is_never_collected_whole_and_json_has_all_its_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    frame, file = FarFrame(count), tmp_path / "r.json"
    write(Report("Title", "", [Section("rows", "Rows", frame)]), Outputs(str(file)))
    assert [row["number"] for row in json.loads(file.read_text())["rows"]] == list(range(count))
    printed = capsys.readouterr().out
    assert f"Rows: rows {count:,}" in printed
    assert (f"{count - SHOWN_ROWS:,} more rows" in printed) is (count > SHOWN_ROWS)


@pytest.mark.parametrize(
    ("folder", "inside"),
    [
        ("/tmp/x", "/tmp/x/rows"),
        ("s3a://bucket/path", "s3a://bucket/path/rows"),
        ("hdfs://name:8020/path/", "hdfs://name:8020/path/rows"),
        ("abfss://c@account.dfs.core.windows.net/x", "abfss://c@account.dfs.core.windows.net/x/rows"),
    ],
)
def test_tables_of_spark_are_written_to_any_url_that_spark_knows(
    monkeypatch: pytest.MonkeyPatch, folder: str, inside: str
) -> None:
    monkeypatch.setattr(output_folders, "LOOKS", frozenset())  # as where only Spark has the keys
    assert inside_folder(folder, "rows") == inside
    frame = FarFrame(1)
    if "://" in folder:
        write(
            Report("Title", "", [Section("rows", "Rows", frame)]),
            Outputs(parquet_folder=folder, is_quiet=True),
        )
        assert [folder for _, folder in frame.written] == [inside]
