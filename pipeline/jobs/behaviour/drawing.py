"""The drawings of the behaviour report: the members of each group, and the owners of each queue. Pure.

The results are pieces of HTML.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pocketmq.protocol.message.topics import retry_topic

from ..report.page import heading, paragraph
from ..report.timeline import PALETTE, Bar, Mark, colours, legend, room_for, timeline
from .ownership import DoubleOwner, Gap, OfQueue, PullRun, merge_tenures

MIN_SECONDS = 1.0
LABEL = 26
"""A longer name is cut to its last characters, because names of one host differ at their end."""


def draw(
    runs: Sequence[PullRun],
    doubles: Sequence[DoubleOwner],
    idle: Sequence[Gap],
    members: Sequence[Mapping[str, Any]],
    side_of: Mapping[str, str] | None = None,
) -> list[str]:
    """A piece for each group of each journal, also for a group that never pulled. `side_of` names the journals if
    several are compared."""
    groups = {(run.journal, run.group) for run in runs} | {
        (member["journal"], member["group"]) for member in members
    }
    if not groups:
        return [paragraph("No consumer pulled or sent a heartbeat during the recording.")]
    pieces: list[str] = []
    for journal, group in sorted(groups):
        side = (side_of or {}).get(journal)
        pieces.append(heading(f"Group {group}" if side is None else f"Group {group} in {side}"))
        pieces += _group(
            journal,
            [run for run in runs if run.queue[:2] == (journal, group)],
            [double for double in doubles if double.queue[:2] == (journal, group)],
            [gap for gap in idle if gap.queue[:2] == (journal, group)],
            [member for member in members if (member["journal"], member["group"]) == (journal, group)],
        )
    return pieces


def _group(
    journal: str,
    runs: Sequence[PullRun],
    doubles: Sequence[DoubleOwner],
    idle: Sequence[Gap],
    members: Sequence[Mapping[str, Any]],
) -> list[str]:
    begin = min([run.begin for run in runs] + [member["joined"].timestamp() for member in members])
    end = max(
        [run.end for run in runs]
        + [member["until"].timestamp() for member in members]
        + [begin + MIN_SECONDS]
    )
    clients = {
        member["client"]: _kind(member) for member in sorted(members, key=lambda member: member["joined"])
    }
    name_of = names(clients | {run.client: clients.get(run.client, "") for run in runs})
    colour_of = colours(list(name_of.values()))
    # With more clients than colours, numbers tell clients of one colour apart.
    number_of = (
        {} if len(colour_of) <= len(PALETTE) else {name: str(n) for n, name in enumerate(colour_of, 1)}
    )
    stays = [
        Bar(
            name_of[member["client"]],
            member["joined"].timestamp(),
            member["until"].timestamp(),
            name_of[member["client"]],
            f"{member['client']} ({_kind(member)}): {member['how']}",
            number_of.get(name_of[member["client"]], ""),
        )
        for member in sorted(members, key=lambda member: member["joined"])
    ]
    tenures = [
        Bar(
            _row(run),
            run.begin,
            run.end,
            name_of[run.client],
            f"{run.client}: {run.pulls:,} pulls, {run.messages:,} messages, {run.end - run.begin:.1f} s",
            number_of.get(name_of[run.client], ""),
        )
        for run in sorted(merge_tenures(runs), key=lambda run: (run.topic, run.queue_id, run.begin))
    ]
    marks = [
        Mark(_row(double), double.begin, f"two owners for {double.end - double.begin:.1f} s")
        for double in doubles
    ]
    marks += [Mark(_row(gap), gap.begin, f"no owner for {gap.end - gap.begin:.1f} s") for gap in idle]
    left = room_for([bar.row for bar in stays + tenures] + [mark.row for mark in marks])
    return [
        paragraph(
            f"Broker {journal.partition('@')[0]}, clients: {len(colour_of)}. Time counts from {_moment(begin)}. "
            "Circles mark findings; point at a bar or circle for details."
        ),
        paragraph("Colours repeat; the number in a bar is the client's.") if number_of else legend(colour_of),
        heading("Who was a member when", 3),
        timeline(stays, [], begin, end, colour_of, left),
        heading("Who read which queue when", 3),
        timeline(tenures, marks, begin, end, colour_of, left),
    ]


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _kind(member: Mapping[str, Any]) -> str:
    """JAVA 4.9.8"""
    return " ".join(str(member[name]) for name in ("language", "release") if member.get(name))


def _row(owned: OfQueue) -> str:
    """The name of a queue's row. The group's retry topic is shortened, because the heading names the group."""
    topic = "retry" if owned.topic == retry_topic(owned.group) else owned.topic
    return f"{topic if len(topic) <= LABEL else '...' + topic[3 - LABEL :]} {owned.queue_id}"


def names(clients: Mapping[str, str]) -> dict[str, str]:
    """Client ids, short enough for a drawing, with language and release: without the part from `#` on if the rest
    tells them apart."""
    heads = [client.partition("#")[0] for client in clients]
    short = heads if len(set(heads)) == len(heads) else list(clients)
    return {
        client: f"{head if len(head) <= LABEL else '...' + head[3 - LABEL :]} {kind}".rstrip()
        for head, (client, kind) in zip(short, clients.items(), strict=True)
    }
