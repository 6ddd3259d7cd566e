"""The blocks of docs/tables.md and docs/jobs.md run in order, and print what the documents show.

All Python blocks of a document are one program, run after its console blocks.
"""

from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="the extra pocketmq[tables] is not installed")

from documents import FENCE, ROOT, Terminal, blocks, commands

DOCUMENTS = {"tables.md": ("polars", "pandas"), "jobs.md": ()}
"""Document -> packages that its program needs besides the extra `tables`."""


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTS)
def test_examples_run_and_print_what_the_document_shows(name: str, tmp_path: Path) -> None:
    for package in DOCUMENTS[name]:
        pytest.importorskip(package, reason="the extra pocketmq[frames] is not installed")
    document, terminal = ROOT / "docs" / name, Terminal(tmp_path)
    try:
        for command, expected in commands(document):
            terminal.check(command, expected)
        if blocks(document, "python"):
            terminal.check_programs(document)
    finally:
        terminal.end_server()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_block_is_run_or_is_text(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert {language for language, _ in FENCE.findall(text)} <= {"console", "python", "text"}
