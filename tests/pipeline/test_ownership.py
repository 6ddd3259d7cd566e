"""Who owned a queue when: hand-overs, gaps, double owners, and the drawing of it. No Spark."""

from datetime import UTC, datetime
from typing import Any

from pocketmq.pipeline.jobs.behaviour.drawing import draw, names
from pocketmq.pipeline.jobs.behaviour.ownership import (
    PullRun,
    double_owners,
    end_at_next_run,
    gaps,
    merge_tenures,
)
from pocketmq.pipeline.jobs.report.page import table


def run(client: str, begin: float, end: float, queue_id: int = 0) -> PullRun:
    return PullRun("broker@1", "g", "T", queue_id, begin, end, client, 1, 0)


def test_a_pull_that_still_waits_after_a_hand_over_is_not_a_second_owner() -> None:
    """A's last pull waits at the broker until 20 s, B reads from 5 s on."""
    cut = end_at_next_run([run("A", 0, 20), run("B", 5, 9)])
    assert [(one.client, one.begin, one.end) for one in cut] == [("A", 0, 5), ("B", 5, 9)]
    assert double_owners(cut) == []


def test_each_pair_of_double_owners_is_two_tenures() -> None:
    clients = ["A", "B"] * 3 + ["C", "D"] * 2 + ["A"]
    runs = [run(client, number, number + 1) for number, client in enumerate(clients)]
    assert [double.clients for double in double_owners(runs)] == [("A", "B"), ("C", "D")]
    tenures = sorted(merge_tenures(runs), key=lambda one: one.begin)
    assert [(one.client, one.begin, one.end, one.pulls) for one in tenures] == [
        ("A", 0, 5, 3), ("B", 1, 6, 3), ("C", 6, 9, 2), ("D", 7, 10, 2), ("A", 10, 11, 1),
    ]  # fmt: skip


def test_a_client_that_alternates_with_two_others_keeps_each_of_its_runs_once() -> None:
    runs = [run(client, number, number + 1) for number, client in enumerate("ABABCBC")]
    assert sum(one.pulls for one in merge_tenures(runs)) == len(runs)


def test_a_queue_held_by_a_waiting_pull_is_not_a_gap() -> None:
    assert gaps(end_at_next_run([run("A", 0, 15), run("B", 15.5, 20)]), 5.0) == []
    (gap,) = gaps(end_at_next_run([run("A", 0, 2), run("B", 15.5, 20)]), 5.0)
    assert (gap.begin, gap.end, gap.before, gap.after) == (2, 15.5, "A", "B")


def test_runs_end_at_the_next_run_of_their_own_queue() -> None:
    cut = end_at_next_run([run("A", 0, 20, 0), run("B", 5, 9, 1), run("B", 10, 12, 0)])
    assert [(one.queue_id, one.client, one.end) for one in cut] == [(0, "A", 10), (0, "B", 12), (1, "B", 9)]


def test_names_beside_a_drawing_tell_clients_apart() -> None:
    kinds = {"10.0.0.1@7#1": "JAVA 4.9.8", "10.0.0.1@8#2": "PYTHON 5.5.0", "10.0.0.1@9": ""}
    assert list(names(kinds).values()) == ["10.0.0.1@7 JAVA 4.9.8", "10.0.0.1@8 PYTHON 5.5.0", "10.0.0.1@9"]
    same = {"10.0.0.1@7#1": "", "10.0.0.1@7#2": ""}
    assert list(names(same).values()) == list(same)


def member(client: str, joined: float, until: float) -> dict[str, Any]:
    times = {"joined": datetime.fromtimestamp(joined, UTC), "until": datetime.fromtimestamp(until, UTC)}
    return {"journal": "broker@1", "group": "g", "client": client, "language": "JAVA", "release": "4.9.8",
            "how": "unregistered", **times}  # fmt: skip


def test_the_drawing_has_members_in_the_order_of_joining_and_the_retry_topic_by_its_short_name() -> None:
    retry = PullRun("broker@1", "g", "%RETRY%g", 0, 1, 4, "h@1#a", 1, 0)
    runs = [run("h@2#b", 0, 5), run("h@1#a", 1, 4, 1), retry]
    drawn = "".join(draw(runs, [], [], [member("h@2#b", 0, 5), member("h@1#a", 1, 4)]))
    assert drawn.index("h@2 JAVA 4.9.8") < drawn.index("h@1 JAVA 4.9.8")
    assert ">retry 0<" in drawn
    assert ">T 1<" in drawn


def test_values_that_all_rows_share_are_printed_once_above_the_table() -> None:
    rows = [{"group": "g", "client": "a", "pulls": 1}, {"group": "g", "client": "b", "pulls": 1}]
    html = table(rows)
    assert "All rows: group g." in html
    assert "<th>group</th>" not in html
    assert html.count("<td class=number>1</td>") == 2, "numbers stay in their rows"
    assert "<th>group</th>" in table(rows[:1])
