"""Draws the pictures of the documents from what the program prints: `make pictures`.

    demo.svg        the first two acts of `pocketmq demo`
    explain.svg     `pocketmq explain` after three messages

A picture is the terminal's text, with its colours, as SVG. Addresses and the size of this machine's memory differ from
run to run and are replaced by fixed ones; a test draws both again and compares.
"""

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

FOLDER = Path(__file__).parent
COLUMNS = 92
PROGRAM = str(Path(sys.executable).with_name("pocketmq"))
ANSI = r"(?:\x1b\[[\d;]*m)*"
FIXED = (
    (re.compile(rf"127\.0\.0\.1:{ANSI}\d+"), "127.0.0.1:9876"),
    (re.compile(rf"<= {ANSI}[\d,]+{ANSI} bytes\s+of\s+memory"), "<= 5,153,960,755 bytes of memory"),
)
"""30 % of 16 GiB is what a reader's machine may have."""


def printed(command: list[str], **environment: str) -> str:
    """What a command prints on a terminal of 92 columns, colours included."""
    settings = {
        **os.environ,
        "COLUMNS": str(COLUMNS),
        "FORCE_COLOR": "1",
        "TERM": "xterm-256color",
        **environment,
    }
    settings.pop("NO_COLOR", None)
    ran = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    return ran.stdout


def picture(title: str, command: str, text: str) -> str:
    """The SVG of a terminal in which `command` printed `text`."""
    for pattern, replacement in FIXED:
        text = pattern.sub(replacement, text)
    console = Console(
        record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(Text.assemble(("$ ", "bold green"), command))
    console.print(Text.from_ansi(text.rstrip("\n")))
    drawn = console.export_svg(title=title, theme=MONOKAI, unique_id=title.replace(" ", "-"))
    return re.sub(
        r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL
    )  # no font is fetched: monospace will do


def demo() -> str:
    text = printed([PROGRAM, "demo"])
    acts = re.split(rf"(?m)^(?={ANSI}\d\. )", text)
    return picture("pocketmq demo", "make demo", "".join(acts[:3]))


def explain() -> str:
    # `exec` gives the commands a server of their own; the second one prints.
    session = (
        f"{PROGRAM} send Orders one two three --queue 0 --quiet && {PROGRAM} explain -g billing -t Orders"
    )
    text = printed([PROGRAM, "exec", "--", "sh", "-c", session])
    first_queue = "\n".join(text.splitlines()[:4])
    return picture("pocketmq explain", "pocketmq explain -g billing -t Orders", first_queue)


def main() -> None:
    (FOLDER / "demo.svg").write_text(demo(), encoding="utf-8")
    (FOLDER / "explain.svg").write_text(explain(), encoding="utf-8")


if __name__ == "__main__":
    main()
