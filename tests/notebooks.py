"""Runs the cells of a notebook as one program, and shows the value at the end of a cell as Jupyter does."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "notebooks"


def run(name: str, folder: Path, seconds: float) -> str:
    """What its cells print, in a new process in that folder."""
    program = folder / "notebook.py"
    program.write_text("\n".join(map(_printing, code_cells(name))), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(program)],
        cwd=folder, capture_output=True, text=True, check=False, timeout=seconds,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def code_cells(name: str) -> list[str]:
    book: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell for cell in cells if cell["outputs"] or cell["execution_count"]] == [], (
        "outputs stay out of git"
    )
    return ["".join(cell["source"]) for cell in cells]


def _printing(cell: str) -> str:
    tree = ast.parse(cell)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body[-1] = ast.Expr(ast.Call(ast.Name("print", ast.Load()), [last.value], []))
    return ast.unparse(ast.fix_missing_locations(tree))
