"""Imports run one way, and the wire codecs touch nothing of the outside world."""

import ast
from pathlib import Path

import pytest

from import_statements import ROOT, import_statements

MAY_IMPORT: dict[str, set[str]] = {
    "protocol": set(),
    "core": {"protocol"},
    "store": {"core", "protocol"},
    "broker": {"store", "core", "protocol"},
    "client": {"protocol"},
    "pipeline": {"client", "store", "core", "protocol"},
    "console": {"client", "broker", "store", "protocol"},
    "grpc_endpoint": {"broker", "store", "core", "protocol"},
    "testing": {"console", "grpc_endpoint", "client", "store", "core", "protocol", "broker"},
    "cli": {"testing", "console", "grpc_endpoint", "pipeline", "client", "broker", "store", "protocol"},
}
ENTRIES = {ROOT / "broker" / "__main__.py"}
"""Another name of the whole program (`python -m pocketmq.broker`): nothing imports it, so it may import all."""
PACKAGES = sorted(folder for folder in MAY_IMPORT if (ROOT / folder).is_dir())

OUTSIDE_WORLD = {
    *("asyncio", "uvloop", "select", "selectors", "signal", "socket", "socketserver", "ssl"),
    *("fcntl", "glob", "io", "mmap", "os", "pathlib", "shutil", "tempfile"),
    *("logging", "multiprocessing", "subprocess", "threading", "time"),
}


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported_modules(path: Path) -> list[tuple[int, str]]:
    """(line, module) of every import; of `pocketmq` itself, what is imported from it."""
    return [
        (line, one)
        for line, module, names in import_statements(path)
        for one in ([f"{module}.{name}" for name in names] if module == "pocketmq" and names else [module])
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_package_imports_only_packages_below_it(package: str) -> None:
    wrong = []
    for path in sources(package):
        for line, module in imported_modules(path) if path not in ENTRIES else ():
            parts = module.split(".")
            if parts[0] == "pocketmq" and parts[1] != package and parts[1] not in MAY_IMPORT[package]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert wrong == []


@pytest.mark.parametrize("package", PACKAGES)
def test_folders_are_never_imported_by_their_bare_name(package: str) -> None:
    """`import store` works from the repository root by accident and fails once installed."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in sources(package)
        for line, module in imported_modules(path)
        if module.split(".")[0] in MAY_IMPORT
    ]
    assert wrong == []


def test_protocol_has_no_input_or_output() -> None:
    wrong = []
    for path in sources("protocol"):
        for line, module in imported_modules(path):
            if module.split(".")[0] in OUTSIDE_WORLD:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
        wrong += [
            f"{path.relative_to(ROOT)}:{node.lineno} calls {node.func.id}()"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("open", "print", "input")
        ]
    assert wrong == []


def test_store_starts_no_event_loop_and_opens_no_socket() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in sources("store")
        for line, module in imported_modules(path)
        if module.split(".")[0] in ("asyncio", "uvloop", "socket")
    ]
    assert wrong == []


def test_every_package_has_a_rule() -> None:
    folders = {init.parent.name for init in ROOT.glob("*/__init__.py")} - {"tests", "bench"}
    assert folders <= MAY_IMPORT.keys()


SPARK_AT_IMPORT = {"spark"}
SPARK_ON_USE = {"jobs"}
"""Rooms of the pipeline that import pyspark: on import of the room, or inside functions and under TYPE_CHECKING."""


def test_only_some_rooms_of_the_pipeline_import_spark() -> None:
    wrong = []
    for path in sources("pipeline"):
        room = path.relative_to(ROOT / "pipeline").parts[0]
        at_top = {
            node.lineno
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
        for line, module in imported_modules(path):
            allowed = SPARK_AT_IMPORT if line in at_top else SPARK_AT_IMPORT | SPARK_ON_USE
            if module.split(".")[0] == "pyspark" and room not in allowed:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert wrong == []
