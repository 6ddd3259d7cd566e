"""What clients really did, from a broker's journal: `python -m pocketmq.pipeline.behaviour.job JOURNAL... --html FILE`.

For each group: who was a member when; who owned which queue when, with gaps and double owners; where each queue was
first read, and the rule that decided; pull rate, share of empty pulls, how long pulls were held, intervals of commits
and heartbeats, retries, slow consumers. Several journals are shown side by side, for example one with Java clients of
4.9, one of 5.x and one of ours.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from ..jobs.run import output_options, run_job
from ..report.report import Report, Section
from .drawing import draw
from .frames import (
    HELD_MICROS,
    clients_of,
    first_positions,
    load,
    members_of,
    owners_of,
    pulls_of,
    receives_of,
    requests_of,
    runs_of,
    side_names,
)
from .ownership import DoubleOwner, Gap, double_owners, gaps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLOW_LAG: Final = 1000
"""A client that leaves so many messages unread in its queues at the end is reported as slow."""
DEFAULT_GAP_SECONDS: Final = 5.0
CLIENTS_NOTE: Final = (
    f"Empty: the share of pulls without a message. Held: the share that waited at the broker for messages, for "
    f"{HELD_MICROS // 1000} ms or more, and how long. Commit and heartbeat: the median time between two of them. Send "
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


def build(spark: "SparkSession", paths: Sequence[str], *, gap_seconds: float = DEFAULT_GAP_SECONDS) -> Report:
    """The report over journals in folders or files; each path is one side of the comparison."""
    entries = load(spark, paths).cache()
    pulls = pulls_of(entries).cache()
    runs = runs_of(pulls)
    doubles, idle = double_owners(runs), gaps(runs, gap_seconds)
    positions = first_positions(entries, pulls)
    # Both are used twice: for findings and drawings, and as tables.
    reads = pulls.unionByName(receives_of(entries))
    members, clients = members_of(entries).cache(), clients_of(entries, reads).cache()
    dropped = entries.where("kind = 'dropped'").selectExpr("coalesce(sum(count), 0) n").collect()[0].n
    findings = findings_of(doubles, idle, clients, dropped)
    name_of = dict(zip(paths, side_names(paths), strict=True))
    side_of = {journal: name_of[path] for journal, path in _sides(paths).items()} if len(paths) > 1 else {}
    drawings = draw(runs, doubles, idle, [row.asDict() for row in members.collect()], side_of)
    return Report(
        "Client behaviour",
        f"From {', '.join(paths)}.",
        [
            Section("clients", "Clients, side by side", clients, CLIENTS_NOTE),
            Section("members", "Members of the groups", members),
            Section("owners", "Owners of the queues, with times", owners_of(spark, runs), OWNERS_NOTE),
            Section("positions", "First positions, and the rule that decided", positions, POSITIONS_NOTE),
            Section("requests", "Requests by code", requests_of(entries)),
        ],
        findings,
        drawings,
    )


def _sides(paths: Sequence[str]) -> dict[str, str]:
    from ..files.journal_rows import journal_paths

    return journal_paths(paths)


def findings_of(
    doubles: Sequence[DoubleOwner], idle: Sequence[Gap], clients: "DataFrame", dropped: int
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
        f"{row['group']}: {row.client} is slow: {row.unreadAtEnd:,} messages were unread at its last pulls"
        for row in clients.where(f"unreadAtEnd >= {SLOW_LAG}").collect()
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
@output_options
def main(*, journals: tuple[str, ...], gap_seconds: float, **options: Any) -> None:
    """Show what clients did, from the JOURNALS of brokers started with --journal. Several journals are compared."""

    def built(spark: "SparkSession") -> Report:
        return build(spark, journals, gap_seconds=gap_seconds)

    run_job("behaviour", built, check=lambda: _sides(journals), is_short=True, **options)


if __name__ == "__main__":
    main()
