"""Every option and column that the program knows has a row in its page, and the pages name no other."""

import re
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pocketmq.pipeline.planning import topic_options
from pocketmq.pipeline.planning.access_names import ACCESS_NAMES
from pocketmq.pipeline.records.batch_encoder import COLUMNS as SINK_COLUMNS
from pocketmq.pipeline.records.columns import MESSAGE_COLUMNS
from pocketmq.pipeline.sink import sink_options
from pocketmq.pipeline.sources import store_source, task_reader

DOCS = Path(__file__).parents[2] / "docs"
ALIASES = {"nameServer", "topic"}


TITLES = {
    "topics": "The source `rocketmq`",
    "sink": "The sink `rocketmq`",
    "stores": "The source `rocketmq-store`",
    "journals": "The source `pocketmq-journal`",
}


def part(name: str) -> str:
    """The text of docs/pipeline.md about one of the formats."""
    text = (DOCS / "pipeline.md").read_text(encoding="utf-8")
    return text.split(f"\n## {TITLES[name]}: ")[1].split("\n## ")[0]


def named(page: str, head: str) -> set[str]:
    """The names in the first cells of the tables whose first column has this head."""
    text = part(page)
    tables = re.findall(rf"^\| {head} \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    cells = [line.split("|")[1] for table in tables for line in table.splitlines()]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def without_access(names: set[str]) -> set[str]:
    return {name for name in names if not name.startswith((".", "rocketmq.tls", "rocketmq.accessKey"))}


def test_options_of_the_source_of_topics_are_those_of_its_page() -> None:
    known = set(topic_options.SOURCE_OPTION_NAMES)
    assert without_access(named("topics", "option")) - ALIASES == without_access(known)
    shown = part("topics")
    assert [name for name in ACCESS_NAMES if name.rpartition(".")[2] not in shown] == []


def test_columns_of_messages_are_those_of_the_page() -> None:
    shown = part("topics")
    assert [name for name in MESSAGE_COLUMNS if f"`{name}`" not in shown] == []


def test_options_and_columns_of_the_sink_are_those_of_its_page() -> None:
    known = set(sink_options._NAMES) - set(ACCESS_NAMES)
    assert named("sink", "option") - {"nameServer"} == known
    assert named("sink", "column") == SINK_COLUMNS.keys()


def test_options_of_stores_and_journals_are_those_of_their_pages() -> None:
    known = {*store_source._NAMES, task_reader.PATHS}
    assert named("stores", "option") - {"load"} == known
    assert named("journals", "option") - {"load"} == {"path", "paths"}
