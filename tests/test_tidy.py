"""House rules that a reader would otherwise have to enforce: sizes, names, first lines, no open ends.

Checks the files git would commit. Formatting and types are checked by ruff and mypy, not here.
"""

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import clock_readings

ROOT = Path(__file__).resolve().parent.parent
LINES_AT_MOST = 450
FUNCTION_LINES_AT_MOST = 70
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "base", "impl"}
TEXT = {".py", ".md", ".toml", ".txt", ".xml", ".java", ".yml", ".yaml"} | {
    *(".cfg", ".conf", ".sh", ".json", ".html", ".js", ".css", "")
}

# Written in pieces so that this file passes its own test.
LEFT_BEHIND = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX)\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}*/-])/(?:work|root|home/\w+|Users/\w+)/\w")
SHARED_FOLDER = re.compile(r"\.\./sha" r"red\b")
REGISTRY = re.compile(
    r"pypi\.(?:org|io)|pythonhosted\.org|crates\.io|npmjs\.(?:org|com)|repo\d?\.maven|maven\.org/maven2|proxy\.golang\.org|deb\.debian\.org"
)


@functools.cache
def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode != 0:
        pytest.skip("not a git work tree: nothing to compare against")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [
        path for path in paths if path.is_file() and not path.is_symlink() and ".namespace" not in path.parts
    ]


@functools.cache
def outline(path: Path) -> tuple[str | None, list[tuple[str, int, int]]]:
    """The docstring, and of each function its name, first line and number of lines. The trees are too large to keep."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [
        (node.name, node.lineno, node.end_lineno - node.lineno + 1)
        for node in statements(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
    ]
    return ast.get_docstring(tree), functions


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Those of a file, and those inside them. Expressions hold none, and there are many more of them."""
    waiting = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
                waiting.append(node)
            if isinstance(node, ast.stmt):
                yield node


def python_files(folder: str = "") -> list[Path]:
    """All, or those of one folder of the checkout and those beside the folders as "."."""
    files = [path for path in tracked() if path.suffix == ".py"]
    return [path for path in files if folder_of(path) == folder] if folder else files


def folder_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else "."


FOLDERS = [".", *sorted(path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] != ".")]
of_each_folder = pytest.mark.parametrize("folder", FOLDERS)


def text_files() -> list[Path]:
    return [path for path in tracked() if path.suffix in TEXT and path.name != "LICENSE"]


def findings(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    found = []
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    return found


def test_no_python_file_is_too_long_to_read_at_once() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}
    assert {
        str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > LINES_AT_MOST
    } == {}


@of_each_folder
def test_functions_fit_a_screen(folder: str) -> None:
    long = [
        f"{path.relative_to(ROOT)}:{line} {name}: {lines} lines"
        for path in python_files(folder)
        for name, line, lines in outline(path)[1]
        if lines > FUNCTION_LINES_AT_MOST
    ]
    assert long == []


def test_file_names_describe_their_content() -> None:
    vague = [
        str(path.relative_to(ROOT))
        for path in python_files()
        if {path.stem, *path.stem.split("_"), path.parent.name} & VAGUE_NAMES
    ]
    assert vague == []


@of_each_folder
def test_every_python_file_begins_with_a_docstring(folder: str) -> None:
    silent = [str(path.relative_to(ROOT)) for path in python_files(folder) if not outline(path)[0]]
    assert silent == []


def test_no_file_has_a_to_do_note() -> None:
    assert findings(LEFT_BEHIND, text_files()) == []


def test_no_path_of_one_machine() -> None:
    assert findings(MACHINE_PATH, text_files()) == []


def test_no_registry_address() -> None:
    assert findings(REGISTRY, text_files()) == []


def test_files_speak_of_the_project_only() -> None:
    assert findings(SHARED_FOLDER, text_files()) == []


def test_no_test_reads_a_clock_or_sleeps_but_the_known_ones() -> None:
    """Luck decides about a test that does. See `clock_readings.py` for what to write instead."""
    new = {
        name: count
        for name, count in clock_readings.found().items()
        if count > clock_readings.KNOWN.get(name, 0)
    }
    assert new == {}
