"""The blocks of docs/tables.md and docs/jobs.md run in order, and print what the documents show.

All Python blocks of a document are one program, run after its first console block.
"""

import doctest
import re
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="the extra pocketmq[tables] is not installed")

from documents import ANYTHING, FENCE, Terminal, blocks, commands

DOCS = Path(__file__).parents[2] / "docs"
PROGRAM_AND_OUTPUT = re.compile(
    r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
DOCUMENTS = {"tables.md": ("polars", "pandas"), "jobs.md": ()}
"""Document -> packages that its program needs besides the extra `tables`."""
NEXT_BLOCK = "-- next block"


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTS)
def test_examples_run_and_print_what_the_document_shows(name: str, tmp_path: Path) -> None:
    for package in DOCUMENTS[name]:
        pytest.importorskip(package, reason="the extra pocketmq[frames] is not installed")
    document = DOCS / name
    terminal, checker = Terminal(tmp_path), doctest.OutputChecker()
    try:
        for command, expected in commands(document):
            printed = terminal.run(command)
            assert checker.check_output(expected, printed, ANYTHING), f"$ {command}\n{printed}"
        check_program(document, terminal)
    finally:
        terminal.end_server()


def check_program(document: Path, terminal: Terminal) -> None:
    programs = [text.replace("127.0.0.1:9876", terminal.address) for text in blocks(document, "python")]
    if not programs:
        return
    program = f"\nprint({NEXT_BLOCK!r})\n".join(programs)
    (terminal.folder / "examples.py").write_text(program, encoding="utf-8")
    printed = terminal.run(".venv/bin/python examples.py").split(f"{NEXT_BLOCK}\n")
    examples = PROGRAM_AND_OUTPUT.findall(document.read_text(encoding="utf-8"))
    assert len(printed) == len(examples) == len(programs)
    for (text, expected), output in zip(examples, printed, strict=True):
        if expected:
            assert doctest.OutputChecker().check_output(expected, output, ANYTHING), f"{text}\n{output}"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_block_is_run_or_is_text(name: str) -> None:
    languages = [language for language, _ in FENCE.findall((DOCS / name).read_text(encoding="utf-8"))]
    assert set(languages) <= {"console", "python", "text"}
