"""Every console and Python block of docs/pipeline.md and docs/pipeline-practice.md runs, and prints what they show.

All Python blocks are one program, run where the first of them is; those of the further pages follow.
"""

import re
from pathlib import Path

import pytest

from documents import FENCE, ROOT, Terminal, commands
from spark.drivers import need_java

DOCUMENT = ROOT / "docs" / "pipeline.md"
PAGES = [DOCUMENT.with_name("pipeline-practice.md")]
"""In the order in which their blocks run."""


@pytest.mark.timeout(600)
def test_examples_run_and_print_what_the_document_shows(tmp_path: Path) -> None:
    need_java()
    text = DOCUMENT.read_text(encoding="utf-8")
    first_console = len(re.findall(r"^\$ ", text[: text.index("```python")], re.MULTILINE))
    terminal = Terminal(tmp_path)
    try:
        for number, (command, expected) in enumerate(commands(DOCUMENT)):
            if number == first_console:
                terminal.check_programs(DOCUMENT, *PAGES)
            terminal.check(command, expected)
    finally:
        terminal.end_server()


def test_every_block_is_run_or_is_text() -> None:
    for document in (DOCUMENT, *PAGES):
        languages = {language for language, _ in FENCE.findall(document.read_text(encoding="utf-8"))}
        assert languages <= ({"console", "python", "text"} if document == DOCUMENT else {"python", "text"})
    assert {*DOCUMENT.parent.glob("pipeline-*.md")} == {*PAGES}
