"""The tables of options in docs/pipeline.md have what the formats know, and what they say of it is true."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.spark.sink import sink_options
from pocketmq.pipeline.spark.sources import store_source
from pocketmq.pipeline.spark.sources.default_columns import default_columns
from pocketmq.pipeline.spark.sources.task_reader import read_paths
from pocketmq.pipeline.tables.planning.topic_options import SOURCE_OPTION_NAMES, read_source_options
from pocketmq.pipeline.tables.records.batch_encoder import COLUMNS as SINK_COLUMNS
from pocketmq.pipeline.tables.records.columns import MESSAGE_COLUMNS, STORE_COLUMNS

PAGE = (Path(__file__).parents[2] / "docs" / "pipeline.md").read_text(encoding="utf-8")
CELLS = re.compile(r"(?<!\\)\|")
ERROR = re.compile(r"must be (?:one of )?(.*), got .*", re.DOTALL)
NO_VALUES = ("required", "this or `paths` is required", "")
NEEDED = {"nameServer": "127.0.0.1:9876"}
NEEDED_BY_EXAMPLES = {
    "filterType": {"subExpression": "amount > 3"},
    "endingOffsets": {"groupId": "g"},
    "checkQueues": {"table": "runs"},
}


class Row(NamedTuple):
    """One option of the page, its cells without the marks of code."""

    format: str
    name: str
    alias: str
    default: str
    allowed: str
    example: str


def rows() -> list[Row]:
    found = []
    for part in PAGE.split("\n## ")[1:]:
        format_name = (re.findall(r"`([\w-]+)`", part.partition("\n")[0]) or [""])[0]
        format_name = "sink" if part.startswith("The sink") else format_name
        for table in re.findall(r"^\| option \| default .*\n\|[-|]+\n((?:\|.*\n)+)", part, re.MULTILINE):
            for line in table.splitlines():
                name, default, allowed, _, example, *_ = (
                    cell.strip().replace("\\|", "|") for cell in CELLS.split(line)[1:-1]
                )
                names = [*re.findall(r"`([^`]+)`", name), ""]
                found.append(Row(format_name, names[0], names[1], default, allowed, example.strip("`")))
    return found


def read_topics(texts: dict[str, str]) -> object:
    default_columns(texts, MESSAGE_COLUMNS)
    is_assigned = "assign" in texts or "subscribePattern" in texts
    chosen = {name: text for name, text in texts.items() if not (is_assigned and name == "subscribe")}
    return read_source_options(chosen, is_stream=False)


def read_stores(texts: dict[str, str]) -> object:
    _, others = read_paths(texts)
    default_columns(texts, STORE_COLUMNS)
    return store_source.read_store_options({"path": "/store"} | others)


READERS: dict[str, tuple[Callable[[dict[str, str]], object], dict[str, str], tuple[str, ...]]] = {
    "rocketmq": (read_topics, NEEDED | {"subscribe": "T"}, SOURCE_OPTION_NAMES),
    "sink": (sink_options.read_sink_options, NEEDED, sink_options._NAMES),
    "rocketmq-store": (read_stores, {}, ("path", "paths", *store_source._NAMES[1:])),
    "pocketmq-journal": (read_paths, {}, ("path", "paths")),
}
"""Of each format: what reads its options, those it needs in any case, and all that it knows."""
ROWS = rows()


@pytest.mark.parametrize("name", READERS)
def test_the_page_has_every_option_of_a_format(name: str) -> None:
    known = READERS[name][2]
    of_sink = sink_options.ACCESS_NAMES if name == "sink" else ()  # the page has those of the source only
    assert (*(row.name for row in ROWS if row.format == name), *of_sink) == known


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.format}: {row.name}" for row in ROWS])
def test_what_the_page_says_of_an_option_is_true(row: Row) -> None:
    reading, needed, _ = READERS[row.format]
    assert allowed_values(row) == row.allowed
    if row.default in NO_VALUES:
        return
    assert reading(needed | {row.name: row.default.partition(";")[0]}) == reading(needed)
    others = NEEDED_BY_EXAMPLES.get(row.name, {})
    assert reading(needed | others | {row.name: row.example}) is not None, "the example is allowed"


def allowed_values(row: Row) -> str:
    """In the words of the error about a value that is not."""
    reading, needed, _ = READERS[row.format]
    rest = {name: text for name, text in needed.items() if name not in (row.name, row.alias)}
    try:
        reading(rest | {row.name: "?(" if "attern" in row.name else "?"})
    except OptionError as error:
        found = ERROR.fullmatch(error.problem)
        if found is not None:
            words = re.sub(r"such as (\S+)\Z", r"such as `\1`", found[1])
            return re.sub(r"names of .*", "names of columns", words)
    return "text"


def test_columns_are_those_of_the_page() -> None:
    assert [name for name in MESSAGE_COLUMNS if f"`{name}`" not in PAGE] == []
    sink = PAGE.split("\n## The sink `rocketmq`")[1].split("\n## ")[0]
    (table,) = re.findall(r"^\| column \|.*\n\|[-|]+\n((?:\|.*\n)+)", sink, re.MULTILINE)
    cells = [line.split("|")[1] for line in table.splitlines()]
    assert {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)} == SINK_COLUMNS.keys()
