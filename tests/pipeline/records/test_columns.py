"""Which columns a table of messages has: the lean ones, all, or those that are named."""

import pytest
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.spark.sources.default_columns import default_columns
from pocketmq.pipeline.tables.records.columns import LEAN_COLUMNS, MESSAGE_COLUMNS, STORE_COLUMNS


def test_lean_columns_are_part_of_all_columns_in_their_order() -> None:
    assert tuple(default_columns({}, MESSAGE_COLUMNS)) == LEAN_COLUMNS
    assert default_columns({"columns": "ALL"}, MESSAGE_COLUMNS) == MESSAGE_COLUMNS
    assert len(LEAN_COLUMNS) == 11


def test_properties_are_added_and_left_out() -> None:
    assert set(default_columns({"includeProperties": "true"}, MESSAGE_COLUMNS)) == {
        *LEAN_COLUMNS,
        "properties",
    }
    everything = default_columns({"columns": "all", "includeproperties": "false"}, MESSAGE_COLUMNS)
    assert everything == {name: kind for name, kind in MESSAGE_COLUMNS.items() if name != "properties"}


def test_names_are_taken_in_the_fixed_order_without_repetition() -> None:
    assert list(default_columns({"columns": " status,body , topic,topic"}, STORE_COLUMNS)) == [
        "topic",
        "body",
        "status",
    ]


@pytest.mark.parametrize("text", ["", ",", "offset", "topic,Body"])
def test_an_unknown_name_is_an_error_that_lists_the_columns(text: str) -> None:
    with pytest.raises(OptionError, match="option columns must be lean, all or names of topic, brokerName"):
        default_columns({"columns": text}, MESSAGE_COLUMNS)
