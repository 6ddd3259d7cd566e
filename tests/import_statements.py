"""The imports of a source file, read with `ast`: each counts, also one inside a function or under TYPE_CHECKING."""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@functools.cache
def import_statements(path: Path) -> list[tuple[int, str, list[str]]]:
    """(line, absolute module, names imported from it); relative ones are resolved against pocketmq.<folder>."""
    package = ["pocketmq", *path.relative_to(ROOT).parent.parts]
    found: list[tuple[int, str, list[str]]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            found.append((node.lineno, module, [alias.name for alias in node.names]))
    return found
