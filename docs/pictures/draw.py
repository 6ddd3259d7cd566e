"""Draws the pictures of the documents from what the program prints: `make pictures`.

    demo.svg        the first two acts of `pocketmq demo`
    explain.svg     `pocketmq explain` after three messages
    page-*.png      the page of the HTTP port, light and dark, if there is a browser (`make browser`)
    the others      drawings, see `diagrams.py`; `draw.py scale` draws only this one

A picture of a terminal is its text, with its colours, as SVG. Addresses and the size of this machine's memory differ
from run to run and are replaced by fixed ones; a test draws all but the page again and compares.
"""

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from diagrams import DIAGRAMS
from pocketmq.testing import EmbeddedServer
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from console.browser import MISSING, browser

FOLDER = Path(__file__).parent
STATE = {
    "topics": {"orders": 4, "payments": 2},
    "groups": ["billing", "shipping"],
    "messages": [{"topic": "orders", "body": f"order {number}", "tags": "created"} for number in range(12)]
    + [{"topic": "payments", "body": f"payment {number}", "keys": [str(number)]} for number in range(5)],
}
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


def photograph() -> None:
    """The page after some traffic, as a browser shows it."""
    with EmbeddedServer(admin_port=0, load=[STATE]) as server, browser() as window:
        for dark in (False, True):
            window.look(1100, dark=dark)
            window.open(server.admin_url)
            window.sees("orders", "payments")
            window.screenshot(FOLDER / f"page-{'dark' if dark else 'light'}.png")


def main() -> None:
    if wanted := sys.argv[1:]:
        for name in wanted:
            (FOLDER / f"{name}.svg").write_text(DIAGRAMS[name](), encoding="utf-8")
        return
    for name, draw in {"demo": demo, "explain": explain, **DIAGRAMS}.items():
        (FOLDER / f"{name}.svg").write_text(draw(), encoding="utf-8")
    if MISSING:
        print(f"no pictures of the page: {', '.join(MISSING)} is missing; `make browser` installs it")
    else:
        photograph()


if __name__ == "__main__":
    main()
