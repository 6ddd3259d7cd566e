"""The notebook for DuckDB and Polars runs from its first cell to its last, and shows what was sent."""

import re
from pathlib import Path

import pytest

import notebooks


@pytest.mark.slow
def test_cells_show_the_orders(tmp_path: Path) -> None:
    for package in ("duckdb", "polars"):
        pytest.importorskip(package, reason="the extras pocketmq[tables,frames] are not installed")
    printed = notebooks.run("duckdb-polars.ipynb", tmp_path, seconds=50)
    cells = [re.findall(r"\w+", line) for line in printed.splitlines()]
    prices = {
        article: sum(5 + number % 7 for number in range(100) if number % 4 and number % 3 == index)
        for index, article in enumerate(("book", "pen", "lamp"))
    }
    assert ["open", "25"] in cells
    assert ["paid", "75"] in cells
    assert all([article, str(price)] in cells for article, price in prices.items()), printed
