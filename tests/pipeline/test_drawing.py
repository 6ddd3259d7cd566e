"""The drawings of the behaviour report: nothing is cut off, and an empty drawing says so. No Spark."""

import re
from datetime import UTC, datetime
from typing import Any

from pocketmq.pipeline.jobs.behaviour.drawing import draw
from pocketmq.pipeline.jobs.behaviour.ownership import PullRun
from pocketmq.pipeline.jobs.report.page import table
from pocketmq.pipeline.jobs.report.timeline import Bar, timeline

BEGIN = 1_700_000_000.0
CLIENT = "192.168.100.200@a-very-long-instance-name#4711"
NARROWEST = 6.5
"""Width in pixels of a character of the labels, about what browsers use."""


def member(client: str = CLIENT) -> dict[str, Any]:
    return {
        "journal": "broker-a@1",
        "group": "billing",
        "client": client,
        "language": "JAVA",
        "release": "5.5.0",
        "joined": datetime.fromtimestamp(BEGIN, UTC),
        "until": datetime.fromtimestamp(BEGIN + 9, UTC),
        "how": "unregistered",
    }


def test_every_label_has_room_beside_its_bars() -> None:
    run = PullRun("broker-a@1", "billing", "A" * 60, 12, BEGIN, BEGIN + 9, CLIENT, 10, 100)
    drawn = "".join(draw([run], [], [], [member()]))
    labels = re.findall(r'<text x="(\d+)" y="\d+" text-anchor="end">([^<]*)<', drawn)
    assert len(labels) == 2
    assert all(len(words) * NARROWEST <= int(x) for x, words in labels), labels
    assert len({x for x, _ in labels}) == 1, "one moment has the same x in both drawings"
    assert "2023-11-14 22:13:20 UTC" in drawn, "what the seconds count from"


def test_a_group_that_never_pulled_is_drawn_with_its_members() -> None:
    drawn = "".join(draw([], [], [], [member()]))
    assert "Group billing" in drawn
    assert "no queue was read" in drawn


def test_a_journal_without_consumers_says_so() -> None:
    assert "No consumer pulled" in "".join(draw([], [], [], []))


def test_column_titles_are_words_aligned_with_their_numbers() -> None:
    drawn = table([{"client": "a", "holdMsMedian": 1.5}, {"client": "b", "holdMsMedian": None}])
    assert "<th>client</th><th class=number>hold ms median</th>" in drawn


def test_numbers_tell_clients_apart_if_there_are_more_than_colours() -> None:
    def drawn(count: int) -> str:
        members = [{**member(), "client": f"host-{number}@1"} for number in range(count)]
        runs = [
            PullRun(
                "broker-a@1", "billing", "T", 0, BEGIN + number, BEGIN + number + 1, f"host-{number}@1", 1, 1
            )
            for number in range(count)
        ]
        return "".join(draw(runs, [], [], members))

    assert 'class="in"' not in drawn(8)
    assert 'class="legend"' in drawn(8)
    assert re.findall(r'class="in"[^>]*>(\d+)<', drawn(9)) == [str(number) for number in range(1, 10)] * 2
    assert 'class="legend"' not in drawn(9)


def test_an_axis_has_one_unit() -> None:
    bar = Bar("row", BEGIN, BEGIN + 600, "one")
    drawn = timeline([bar], [], BEGIN, BEGIN + 600, {"one": "#000"}, 50)
    assert set(re.findall(r'text-anchor="middle">[\d.]+ (\w+)<', drawn)) == {"min"}


def test_a_long_text_of_a_table_may_be_broken_and_a_short_one_not() -> None:
    drawn = table([{"rule": "word " * 20}, {"rule": "word"}])
    assert "<td class=long>word word" in drawn
    assert "<td>word</td>" in drawn


def test_drawings_of_two_journals_name_their_journal() -> None:
    other = {**member(), "journal": "broker-a@2"}
    drawn = "".join(draw([], [], [], [member(), other], {"broker-a@1": "old", "broker-a@2": "new"}))
    assert "<h2>Group billing in old</h2>" in drawn
    assert "<h2>Group billing in new</h2>" in drawn
    assert "<h2>Group billing</h2>" in "".join(draw([], [], [], [member()]))
