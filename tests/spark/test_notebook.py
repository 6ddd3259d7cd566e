"""The notebook for Spark runs from its first cell to its last, and shows what was sent and written."""

import re
from pathlib import Path

import notebooks
from spark.drivers import need_java


def test_cells_show_the_orders(tmp_path: Path) -> None:
    need_java()
    printed = notebooks.run("spark.ipynb", tmp_path, seconds=150)
    cells = [re.findall(r"\w+", line) for line in printed.splitlines()]
    assert ["open", "25"] in cells
    assert ["paid", "75"] in cells
    assert ["102"] in cells, "and the two that the notebook writes"
