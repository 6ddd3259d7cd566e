"""What mypy --strict finds in a user's program: every wrong listener, checker and keyword, and nothing else."""

import re
from pathlib import Path

import pytest
from mypy import api

SAMPLE = Path(__file__).with_name("typed_sample.py")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_mypy_finds_exactly_the_lines_that_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    wrong = [
        number
        for number, line in enumerate(SAMPLE.read_text("utf-8").splitlines(), 1)
        if line.endswith("  # wrong")
    ]
    output, errors, _ = api.run(
        ["--strict", "--follow-imports=silent", "--disable-error-code=empty-body", str(SAMPLE)]
    )
    assert errors == ""
    assert sorted({int(at) for at in re.findall(r"typed_sample\.py:(\d+): error", output)}) == wrong, output
