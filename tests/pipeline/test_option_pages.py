"""The tables of options in docs/pipeline.md are made of what the formats know, and their defaults are true."""

import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pocketmq.pipeline.tables.planning import option_table
from pocketmq.pipeline.tables.planning.access_names import ACCESS_NAMES
from pocketmq.pipeline.tables.records.batch_encoder import COLUMNS as SINK_COLUMNS
from pocketmq.pipeline.tables.records.columns import MESSAGE_COLUMNS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pipeline.md"
WRITER = runpy.run_path(str(ROOT / "docs" / "reference.py"))
TABLES = WRITER["option_tables"]()
NO_VALUES = (option_table.REQUIRED, "this or `paths` is required", "")
NEEDED_BY_EXAMPLES = {
    "filterType": {"subExpression": "amount > 3"},
    "endingOffsets": {"groupId": "g"},
    "checkQueues": {"table": "runs"},
}
CASES = [
    (name, option)
    for name, (options, _, _) in TABLES.items()
    for option in options
    if option.default not in NO_VALUES
]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == WRITER["pipeline_text"](), "run: make reference"


@pytest.mark.parametrize(("name", "option"), CASES, ids=[f"{name}: {one.name}" for name, one in CASES])
def test_an_option_with_its_default_changes_nothing(name: str, option: option_table.Option) -> None:
    _, reading, needed = TABLES[name]
    assert reading(needed | {option.name: option.default.partition(";")[0]}) == reading(needed)
    others = NEEDED_BY_EXAMPLES.get(option.name, {})
    assert reading(needed | others | {option.name: option.example}) is not None, "the example is allowed"


def test_options_of_keys_tls_and_addresses_are_described() -> None:
    assert option_table.names_of(option_table.TOPICS["Access and addresses"]) == ACCESS_NAMES


def test_columns_are_those_of_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in MESSAGE_COLUMNS if f"`{name}`" not in text] == []
    sink = text.split("\n## The sink `rocketmq`")[1].split("\n## ")[0]
    (table,) = re.findall(r"^\| column \|.*\n\|[-|]+\n((?:\|.*\n)+)", sink, re.MULTILINE)
    cells = [line.split("|")[1] for line in table.splitlines()]
    assert {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)} == SINK_COLUMNS.keys()
