"""Every console and Python block of docs/pipeline.md and docs/pipeline-practice.md runs, and prints what they show.

All Python blocks are one program, run where the first of them is; those of the further pages follow. A text block
directly after a Python block is the output of that block.
"""

import doctest
import re
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pocketmq.pipeline.errors import NoJavaError
from pocketmq.pipeline.spark.session.java import find_java

from documents import ADDRESS, ANYTHING, FENCE, Terminal, blocks, commands

DOCUMENT = Path(__file__).parents[2] / "docs" / "pipeline.md"
PAGES = [DOCUMENT.with_name("pipeline-practice.md")]
"""In the order in which their blocks run."""
PROGRAM_AND_OUTPUT = re.compile(
    r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
NEXT_BLOCK = "-- next block"


def program_of(address: str) -> str:
    documents = (DOCUMENT, *PAGES)
    parts = [text.replace(ADDRESS, address) for one in documents for text in blocks(one, "python")]
    return f"\nprint({NEXT_BLOCK!r})\n".join(parts)


@pytest.mark.timeout(600)
def test_examples_run_and_print_what_the_document_shows(tmp_path: Path) -> None:
    try:
        find_java()
    except NoJavaError as error:
        pytest.skip(f"Spark suite skipped: {error}")
    text = DOCUMENT.read_text(encoding="utf-8")
    first_console = len(re.findall(r"^\$ ", text[: text.index("```python")], re.MULTILINE))
    terminal, checker = Terminal(tmp_path), doctest.OutputChecker()
    try:
        for number, (command, expected) in enumerate(commands(DOCUMENT)):
            if number == first_console:
                check_program(terminal)
            printed = terminal.run(command)
            assert checker.check_output(expected, printed, ANYTHING), f"$ {command}\n{printed}"
    finally:
        terminal.end_server()


def check_program(terminal: Terminal) -> None:
    (terminal.folder / "examples.py").write_text(program_of(terminal.address), encoding="utf-8")
    printed = terminal.run(".venv/bin/python examples.py").split(f"{NEXT_BLOCK}\n")
    examples = [
        example
        for document in (DOCUMENT, *PAGES)
        for example in PROGRAM_AND_OUTPUT.findall(document.read_text(encoding="utf-8"))
    ]
    assert len(printed) == len(examples)
    for (program, expected), output in zip(examples, printed, strict=True):
        if expected:
            assert doctest.OutputChecker().check_output(expected, output, ANYTHING), f"{program}\n{output}"


def test_every_block_is_run_or_is_text() -> None:
    for document in (DOCUMENT, *PAGES):
        languages = {language for language, _ in FENCE.findall(document.read_text(encoding="utf-8"))}
        assert languages <= ({"console", "python", "text"} if document == DOCUMENT else {"python", "text"})
    assert {*DOCUMENT.parent.glob("pipeline-*.md")} == {*PAGES}
