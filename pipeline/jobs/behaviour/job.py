"""What clients really did, from a broker's journal: `pocketmq pipeline behaviour JOURNAL... --html FILE`.

For each group: who was a member when; who owned which queue when, with gaps and double owners; where each queue was
first read, and the rule that decided; pull rate, share of empty pulls, how long pulls were held, intervals of commits
and heartbeats, retries, slow consumers. Several journals are shown side by side, for example one with Java clients of
4.9, one of 5.x and one of ours.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from ..answers.on_engine import engine_options, run_on_engine
from ..report.report import Report, Section
from ..sql.engine import Engine

if TYPE_CHECKING:
    from .ownership import DoubleOwner, Gap

SLOW_LAG: Final = 1000
"""A client that leaves so many messages unread in its queues at the end is reported as slow."""
DEFAULT_GAP_SECONDS: Final = 5.0
CLIENTS_NOTE: Final = (
    "Empty: the share of pulls without a message. Held: the share that waited at the broker for messages, for "
    "50 ms or more, and how long. Commit and heartbeat: the median time between two of them. Send "
    "backs: messages sent back for a retry. Unread: messages left in its queues at its last pulls. The receives of a "
    "gRPC client count as pulls; the broker chooses their queues."
)
OWNERS_NOTE: Final = (
    "From a client's first pull of a queue to its last, without a pull of another client in between."
)
POSITIONS_NOTE: Final = (
    "Answer: the offset in the broker's reply when the client asked for its group's offset. First pull: where the "
    "client then began. Max offset: the end of the queue at that moment."
)


def build(engine: Engine, paths: Sequence[str], *, gap_seconds: float = DEFAULT_GAP_SECONDS) -> Report:
    """The report over journals in folders or files; each path is one side of the comparison."""
    from ..sql.arrow_frame import frame_of_rows
    from . import questions
    from .drawing import draw
    from .ownership import double_owners, gaps

    questions.open_journals(engine, paths)
    runs, members = questions.runs_of(engine), questions.members_of(engine)
    doubles, idle = double_owners(runs), gaps(runs, gap_seconds)
    engine.keep("clients", questions.CLIENTS)
    slow = engine.sql(f"select * from clients where unreadAtEnd >= {SLOW_LAG}").rows()
    (dropped,) = engine.sql("select sum(dropped) as n from entries where kind = 'dropped'").rows()
    findings = findings_of(doubles, idle, slow, int(dropped["n"] or 0))
    name_of = dict(zip(paths, questions.side_names(paths), strict=True))
    side_of = {journal: name_of[path] for journal, path in _sides(paths).items()} if len(paths) > 1 else {}
    member_rows = frame_of_rows(questions.MEMBERS, [tuple(member.values()) for member in members])
    clients = engine.sql("select * from clients as c order by c.group, source, client")
    positions, requests = engine.sql(questions.POSITIONS), engine.sql(questions.REQUESTS)
    return Report(
        "Client behaviour",
        f"From {', '.join(paths)}.",
        [
            Section("clients", "Clients, side by side", clients, CLIENTS_NOTE),
            Section("members", "Members of the groups", member_rows),
            Section("owners", "Owners of the queues, with times", questions.owners_of(runs), OWNERS_NOTE),
            Section("positions", "First positions, and the rule that decided", positions, POSITIONS_NOTE),
            Section("requests", "Requests by code", requests),
        ],
        findings,
        draw(runs, doubles, idle, members, side_of),
    )


def _sides(paths: Sequence[str]) -> dict[str, str]:
    from ...tables.files.journal_rows import journal_paths

    return journal_paths(paths)


def findings_of(
    doubles: "Sequence[DoubleOwner]", idle: "Sequence[Gap]", slow: Sequence[Any], dropped: int
) -> list[str]:
    """The findings, a sentence each."""
    findings = [
        f"{double.group}: {double.topic} queue {double.queue_id} was read by two clients at once, "
        f"{double.clients[0]} and {double.clients[1]}, for {double.end - double.begin:.1f} s ({double.changes} changes)"
        for double in doubles
    ]
    findings += [
        f"{gap.group}: {gap.topic} queue {gap.queue_id} was read by no client for {gap.end - gap.begin:.1f} s, "
        f"between {gap.before} and {gap.after}"
        for gap in idle
    ]
    findings += [
        f"{row['group']}: {row['client']} is slow: {row['unreadAtEnd']:,} messages were unread at its last pulls"
        for row in slow
    ]
    if dropped:
        findings.append(
            f"{dropped:,} entries are missing: the broker could not write its journal fast enough"
        )
    return findings


@click.command("behaviour")
@click.argument("journals", nargs=-1, required=True)
@click.option(
    "--gap-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_GAP_SECONDS,
    show_default=True,
    help="Report queues that no client read for longer.",
)
@engine_options
def main(*, journals: tuple[str, ...], gap_seconds: float, **options: Any) -> None:
    """Show what clients did, from the JOURNALS of brokers started with --journal. Several journals are compared."""
    run_on_engine(
        "behaviour",
        lambda engine: build(engine, journals, gap_seconds=gap_seconds),
        check=lambda: _sides(journals),
        **options,
    )
