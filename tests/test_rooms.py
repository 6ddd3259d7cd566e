"""Inside a package the rooms run one way: `ROOMS` lists them bottom up, and a room imports rooms before it only.

A room is a folder of a package, or a file beside the folders. Every import counts, also one inside a function or under
TYPE_CHECKING. Rooms in one line do not import one another. No files import one another in a circle.
"""

import functools
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from import_statements import ROOT, import_statements

ROOMS: dict[str, list[str]] = {
    "protocol": [
        "errors rpc_numbers",
        "languages message",
        "text",
        "bodies",
        "wire",
        "requests",
        "journal_frames",
    ],
    "store": [
        "errors clock layout",
        "put_statistics put_values",
        "config",
        "files",
        "log",
        "lookup",
        "reading",
        "durability",
        "admission",
        "appending",
        "message_store",
        "retention timer",
        "at_rest",
    ],
    "broker": [
        "bounded_cache errors",
        "config",
        "network tables",
        "figures filters time",
        "state",
        "name_server storing",
        "access membership",
        "delayed",
        "first_position transactions",
        "pulling",
        "cluster",
        "pop",
        "sending",
        "broker",
        "admin",
        "handler_modules",
        "node",
        "process",
        "__main__",
    ],
    "client": [
        "errors clock",
        "arguments tasks",
        "values",
        "settings",
        "hooks",
        "connections",
        "access",
        "access_options instance",
        "offsets producing",
        "rebalancing",
        "delivery pulling",
        "push",
        "admin",
    ],
    "pipeline": ["errors", "tables", "spark", "jobs"],
    "pipeline/tables": ["planning records", "brokers files", "arrow"],
    "pipeline/spark": ["sink", "sources", "session"],
    "pipeline/jobs": ["sql", "report", "answers", "behaviour moving"],
    "testing": [
        "errors",
        "time",
        "requests",
        "ledger",
        "faults",
        "state",
        "server",
        "views",
        "cluster",
        "behave",
        "view_of_server",
        "remote rocketmq",
        "fixtures",
        "factories",
        "pytest_plugin",
    ],
    "console": [
        "connections guard pages values",
        "broker_values server_access",
        "answers",
        "cluster_views metrics",
        "message_views",
        "openapi",
        "app",
        "server",
    ],
    "grpc_endpoint": [
        "hpack messages",
        "http2",
        "calls",
        "conversion",
        "clients",
        "producing",
        "consuming",
        "endpoint",
    ],
    "cli": [
        "mistakes times",
        "options server_options",
        "output",
        "inspect",
        "messages",
        "admin behave bench completion demo exec pipeline proxy serve store_command",
        "main",
        "__main__",
    ],
}
"""Bottom up. Rooms in one line do not import one another. The rooms of the pipeline have rooms inside."""


def sources(package: str) -> list[Path]:
    return [path for path in sorted((ROOT / package).rglob("*.py")) if "formats" not in path.parts]


def room_of(path: Path, package: str) -> str:
    return path.relative_to(ROOT / package).parts[0].removesuffix(".py")


@functools.cache
def imports(path: Path) -> list[tuple[int, Path]]:
    """(line, file) of every import of our own, `__init__` files too."""
    return [
        (line, file) for line, module, names in import_statements(path) for file in files_of(module, names)
    ]


def files_of(module: str, names: list[str]) -> set[Path]:
    """The files that `from module import names` reads; none for a module that is not ours."""
    if module.split(".")[0] != "pocketmq":
        return set()
    place = ROOT.joinpath(*module.split(".")[1:])
    if place.with_suffix(".py").is_file():
        return {place.with_suffix(".py")}
    inside = {(place / name).with_suffix(".py") for name in names}
    files = {path for path in inside if path.is_file()}
    return files if files and len(files) == len(inside) else files | {place / "__init__.py"}


@pytest.mark.parametrize("package", ROOMS)
def test_every_room_has_its_floor(package: str) -> None:
    listed = [room for line in ROOMS[package] for room in line.split()]
    assert len(listed) == len(set(listed))
    assert {room_of(path, package) for path in sources(package)} - {"__init__"} == set(listed)


@pytest.mark.parametrize("package", ROOMS)
def test_a_room_imports_only_rooms_below_it(package: str) -> None:
    floor = {room: number for number, line in enumerate(ROOMS[package]) for room in line.split()}
    upward = set()
    for path in sources(package):
        room = room_of(path, package)
        for line, file in imports(path):
            if not file.is_relative_to(ROOT / package) or room == "__init__":
                continue
            other = room_of(file, package)
            if other not in (room, "__init__") and floor[other] >= floor[room]:
                upward.add(f"{path.relative_to(ROOT)}:{line} imports {file.relative_to(ROOT)}")
    assert sorted(upward) == []


FOLDERS = sorted({path.parent for package in ROOMS for path in sources(package)})


@pytest.mark.parametrize("folder", FOLDERS, ids=[str(folder.relative_to(ROOT)) for folder in FOLDERS])
def test_a_folder_is_small_enough_to_see_at_once(folder: Path) -> None:
    """At least three files or rooms besides its map (two files could be one), and at most 14 files."""
    files = list(folder.glob("*.py"))
    rooms = list(folder.glob("*/__init__.py"))
    assert len(files) + len(rooms) >= 4
    assert len([path for path in files if path.name != "__init__.py"]) <= 14


def test_only_listed_rooms_have_rooms_inside() -> None:
    inside = {path.parent.parent for package in ROOMS for path in (ROOT / package).glob("*/*/*.py")}
    assert {str(folder.relative_to(ROOT)) for folder in inside} <= ROOMS.keys()


def test_no_files_import_one_another_in_a_circle() -> None:
    graph = {
        path: {file for _, file in imports(path)} - {path} for package in ROOMS for path in sources(package)
    }
    circles = []
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circle = error.args[1]
            circles.append(" -> ".join(str(path.relative_to(ROOT)) for path in circle))
            graph[circle[1]].discard(circle[0])
        else:
            break
    assert circles == []
