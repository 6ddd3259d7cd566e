"""What clients really did, from a broker's journal: `python -m pocketmq.pipeline.behaviour.job JOURNAL... --html FILE`.

Per group: who was a member when, who owned which queue when, with gaps and double owners; where each queue was first
read and which rule decided; pull rate, share of empty pulls, how long pulls were held, how often offsets were
committed and heartbeats came, retries, slow consumers. Several journals (one of Java clients of 4.9, one of 5.x, one of
ours) stand side by side. The judgement over runs of pulls is `ownership.py`, the drawing `drawing.py`.
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
    requests_of,
    runs_of,
    side_names,
)
from .ownership import DoubleOwner, Gap, double_owners, gaps

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLOW_LAG: Final = 1000
"""Messages a client leaves unread in its queues at the end, from which on it is called slow."""
DEFAULT_GAP_SECONDS: Final = 5.0
CLIENTS_NOTE: Final = (
    f"Empty: the share of pulls that brought nothing. Held: the share that waited at the broker for messages, for "
    f"{HELD_MICROS // 1000} ms or more, and how long. Commit and heartbeat: the usual time between two of them. Send "
    "backs: messages given back to be retried. Unread: what was left in its queues when it pulled last."
)
OWNERS_NOTE: Final = "From a client's first pull of a queue to its last, while no other pulled from it."
POSITIONS_NOTE: Final = (
    "Answer: the offset the broker gave when the client asked where its group stands. First pull: where the client "
    "then began. Max offset: where the queue ended at that moment."
)


def build(spark: "SparkSession", paths: Sequence[str], *, gap_seconds: float = DEFAULT_GAP_SECONDS) -> Report:
    """The report over journals in folders or files; each path is one side of the comparison."""
    entries = load(spark, paths).cache()
    pulls = pulls_of(entries).cache()
    runs = runs_of(pulls)
    doubles, idle = double_owners(runs), gaps(runs, gap_seconds)
    positions = first_positions(entries, pulls)
    # Both are asked for twice: for the findings and the drawing, and as tables.
    members, clients = members_of(entries).cache(), clients_of(entries, pulls).cache()
    dropped = entries.where("kind = 'dropped'").selectExpr("coalesce(sum(count), 0) n").collect()[0].n
    told = findings_of(doubles, idle, clients, dropped)
    name_of = dict(zip(paths, side_names(paths), strict=True))
    side_of = {journal: name_of[path] for journal, path in _sides(paths).items()} if len(paths) > 1 else {}
    drawn = draw(runs, doubles, idle, [row.asDict() for row in members.collect()], side_of)
    return Report(
        "Client behaviour",
        f"From {', '.join(paths)}.",
        [
            Section("clients", "Clients, side by side", clients, CLIENTS_NOTE),
            Section("members", "Members of the groups", members),
            Section(
                "owners", "Owners of the queues, with times", owners_of(spark, runs, doubles), OWNERS_NOTE
            ),
            Section("positions", "First positions, and the rule that decided", positions, POSITIONS_NOTE),
            Section("requests", "Requests by code", requests_of(entries)),
        ],
        told,
        drawn,
    )


def _sides(paths: Sequence[str]) -> dict[str, str]:
    from ..files.journal_rows import journal_paths

    return journal_paths(paths)


def findings_of(
    doubles: Sequence[DoubleOwner], idle: Sequence[Gap], clients: "DataFrame", dropped: int
) -> list[str]:
    """The sentences at the top."""
    told = [
        f"{one.group}: {one.topic} queue {one.queue_id} was read by two clients at once, {one.clients[0]} and "
        f"{one.clients[1]}, for {one.end - one.begin:.1f} s ({one.changes} changes)"
        for one in doubles
    ]
    told += [
        f"{one.group}: {one.topic} queue {one.queue_id} was read by nobody for {one.end - one.begin:.1f} s, "
        f"between {one.before} and {one.after}"
        for one in idle
    ]
    told += [
        f"{row['group']}: {row.client} is slow: {row.unreadAtEnd:,} messages were unread at its last pulls"
        for row in clients.where(f"unreadAtEnd >= {SLOW_LAG}").collect()
    ]
    if dropped:
        told.append(f"{dropped:,} entries are missing: the broker could not write its journal fast enough")
    return told


@click.command("behaviour")
@click.argument("journals", nargs=-1, required=True)
@click.option(
    "--gap-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_GAP_SECONDS,
    show_default=True,
    help="Tell of queues unread for longer.",
)
@output_options
def main(*, journals: tuple[str, ...], gap_seconds: float, **options: Any) -> None:
    """What clients did, from the JOURNALS of brokers started with --journal; several are compared."""

    def built(spark: "SparkSession") -> Report:
        return build(spark, journals, gap_seconds=gap_seconds)

    run_job("behaviour", built, check=lambda: _sides(journals), is_short=True, **options)


if __name__ == "__main__":
    main()
