"""Writes docs/behaviour.md: `make behaviour`. Plays every scenario with every client that can be had here.

    python -m conformance.behaviour.document                      all clients, about 15 minutes
    python -m conformance.behaviour.document "Java 5.5.0" ...     these; the others keep their last figures

Reports are kept in the cache of the official programs, so that one client can be played anew.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pocketmq.testing.behave.run import Report, read_report
from pocketmq.testing.behave.table import FIGURES, played_in, scenarios_of

from conformance.behaviour.clients import CLIENTS, OF_GRPC
from conformance.official.jars import PeersUnavailable, cache

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "behaviour.md"
INTRODUCTION = Path(__file__).with_name("introduction.md")
JOBS = "4"
LEFT_OUT = {"end after", "printed", "sent", "delivered"}
"""Figures by their headings."""


def play(client: str, report: Path) -> None:
    """Every scenario with one client. Raises `PeersUnavailable` if it cannot be had."""
    options = (
        "--jobs",
        JOBS,
        "--name",
        client,
        "--save",
        str(report),
        *(("--grpc",) if client in OF_GRPC else ()),
    )
    words = ("behave", *options, "--", *CLIENTS[client]())
    ran = subprocess.run([sys.executable, "-m", "pocketmq.cli", *words], check=False)
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"pocketmq behave ended with {ran.returncode} for {client}")


def as_markdown(reports: Sequence[Report]) -> str:
    """For a document: a chapter a scenario, by their names; a row a client."""
    parts = []
    for name in sorted(scenarios_of(reports)):
        played = played_in(reports, name)
        figures = [
            figure
            for figure in FIGURES
            if figure.heading not in LEFT_OUT and any(figure.value(one.measures) for _, one in played)
        ]
        rows = [["client", *(figure.heading for figure in figures)], ["---"] * (len(figures) + 1)]
        rows += [[client, *(str(figure.value(one.measures)) for figure in figures)] for client, one in played]
        lines = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        parts.append(f"## {name}\n\n{played[0][1].about}\n\n{lines}\n")
    return "\n".join(parts)


def main(clients: Sequence[str]) -> None:
    folder = cache() / "behave" / "reports"
    folder.mkdir(parents=True, exist_ok=True)
    for client in clients or CLIENTS:
        try:
            play(client, folder / f"{client}.json")
        except PeersUnavailable as why:
            print(f"{client}: left out: {why}", file=sys.stderr)
    reports = [read_report(path) for client in CLIENTS if (path := folder / f"{client}.json").exists()]
    introduction = INTRODUCTION.read_text(encoding="utf-8")
    DOCUMENT.write_text(f"{introduction}\n{as_markdown(reports)}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
