"""The drawings of the behaviour report: for each group who was a member, and who owned which queue. Pure.

Input is what `behaviour_job.py` found; output are pieces of HTML. Next: `html_report.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .html_report import Bar, Mark, colours, heading, legend, paragraph, timeline
from .ownership import DoubleOwner, Gap, Run, merged

LEAST_SECONDS = 1.0


def draw(
    runs: Sequence[Run],
    doubles: Sequence[DoubleOwner],
    idle: Sequence[Gap],
    members: Sequence[Mapping[str, Any]],
) -> list[str]:
    """A piece for each group of each journal."""
    pieces: list[str] = []
    for journal, group in sorted({(run.journal, run.group) for run in runs}):
        mine = [run for run in runs if (run.journal, run.group) == (journal, group)]
        there = [one for one in members if (one["journal"], one["group"]) == (journal, group)]
        pieces += _group(
            journal,
            group,
            mine,
            [one for one in doubles if (one.journal, one.group) == (journal, group)],
            [one for one in idle if (one.journal, one.group) == (journal, group)],
            there,
        )
    return pieces


def _group(
    journal: str,
    group: str,
    runs: Sequence[Run],
    doubles: Sequence[DoubleOwner],
    idle: Sequence[Gap],
    members: Sequence[Mapping[str, Any]],
) -> list[str]:
    begin = min([run.begin for run in runs] + [one["joined"].timestamp() for one in members])
    end = max(
        [run.end for run in runs] + [one["until"].timestamp() for one in members] + [begin + LEAST_SECONDS]
    )
    colour_of = colours(sorted({run.client for run in runs} | {one["client"] for one in members}))
    stays = [
        Bar(
            short(one["client"]),
            one["joined"].timestamp(),
            one["until"].timestamp(),
            one["client"],
            f"{one['client']} ({one['language']}): {one['how']}",
        )
        for one in sorted(members, key=lambda one: one["joined"])
    ]
    tenures = [
        Bar(
            f"{run.topic} {run.queue_id}",
            run.begin,
            run.end,
            run.client,
            f"{run.client}: {run.pulls:,} pulls, {run.messages:,} messages, {run.end - run.begin:.1f} s",
        )
        for run in sorted(merged(runs, doubles), key=lambda run: (run.topic, run.queue_id, run.begin))
    ]
    marks = [
        Mark(f"{one.topic} {one.queue_id}", one.begin, f"two owners for {one.end - one.begin:.1f} s")
        for one in doubles
    ]
    marks += [
        Mark(f"{one.topic} {one.queue_id}", one.begin, f"nobody for {one.end - one.begin:.1f} s")
        for one in idle
    ]
    return [
        heading(f"Group {group}"),
        paragraph(f"Broker {journal.partition('@')[0]}, {len(colour_of)} clients. Circles mark findings."),
        legend(colour_of),
        heading("Members", 3),
        timeline(stays, [], begin, end, colour_of),
        heading("Owners of the queues", 3),
        timeline(tenures, marks, begin, end, colour_of),
    ]


def short(client: str) -> str:
    """A client id as it fits beside a drawing: the end tells clients of one host apart."""
    return client if len(client) <= 26 else "..." + client[-23:]
