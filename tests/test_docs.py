"""The documents are true: their commands run, their links have targets, their tables are those of the program.

`documents.py` runs the commands; `make test` runs this file and is not run again.
"""

import ast
import inspect
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq.broker import handler_modules
from pocketmq.broker.config import keys as config_keys
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.first_position.rules import QueueFacts, Rule, decide
from pocketmq.broker.network.dispatch import BROKER, NAME_SERVER, Handlers
from pocketmq.cli.admin.command import command_rows
from pocketmq.client.admin.client import AdminClient
from pocketmq.protocol.wire.frame import MAX_FRAME_BYTES
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.behave.scenario import read_scenario

from documents import (
    ADDRESS,
    FENCE,
    ROOT,
    Terminal,
    blocks,
    check_named_tests,
    commands,
    named_files,
    prints,
    rows,
    section,
)
from raw_peer import Peer

PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/py.typed"))
README = ROOT / "README.md"
REPOSITORY: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"][
    "Repository"
]
BLOB = f"{REPOSITORY}/blob/main/"
RAW = REPOSITORY.replace("github.com", "raw.githubusercontent.com") + "/main/"
COMPATIBILITY = ROOT / "docs" / "compatibility.md"
CONFIGURATION = ROOT / "docs" / "configuration.md"
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "protocol/*.md", "store/*.md", "java/*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
)
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
SPARK_DOCUMENTS = {name for name in NAMES if name.startswith("docs/pipeline")}
"""`spark/test_document.py` runs these."""
TABLE_DOCUMENTS = {"docs/tables.md", "docs/jobs.md"}
"""`pipeline/test_documents.py` runs these."""
TUTORIALS = [name for name in NAMES if name.startswith("docs/tutorial-")]
SLOW_DOCUMENTS = {"docs/command-line.md", "docs/first-position.md", *TUTORIALS}


# -- commands


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    one = Terminal(tmp_path)
    yield one
    one.end_server()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW_DOCUMENTS else ())
        for name in NAMES
        if list(commands(ROOT / name)) and name not in SPARK_DOCUMENTS | TABLE_DOCUMENTS
    ],
)
def test_commands_print_what_the_document_shows(name: str, terminal: Terminal) -> None:
    if name == "docs/tutorial-data.md":
        pytest.importorskip("duckdb", reason="the extra pocketmq[tables] is not installed")
    for file, text in named_files(ROOT / name).items():
        (terminal.folder / file).write_text(text, encoding="utf-8")
    for command, expected in commands(ROOT / name):
        if command.strip() in ("make test", "make test-all"):
            continue
        terminal.check(command, expected)


@pytest.mark.parametrize("name", TUTORIALS)
def test_every_block_of_a_tutorial_is_run(name: str) -> None:
    files = named_files(ROOT / name)
    assert len(files) == len(blocks(ROOT / name, "python"))
    assert {language for language, _ in FENCE.findall((ROOT / name).read_text(encoding="utf-8"))} <= {
        "console",
        "python",
        "text",
    }
    ran = "".join(command for command, _ in commands(ROOT / name))
    assert "-m pytest" in ran or [file for file in files if file not in ran] == []


@pytest.mark.parametrize("name", ["architecture", "command-line"])
def test_a_program_of_the_document_prints_what_it_shows(name: str, terminal: Terminal) -> None:
    document = ROOT / "docs" / f"{name}.md"
    terminal.run(".venv/bin/pocketmq serve --ephemeral")
    program = "\n".join(blocks(document, "python")).replace(ADDRESS, terminal.address)
    (terminal.folder / "example.py").write_text(program, encoding="utf-8")
    printed = terminal.run(".venv/bin/python example.py")
    assert prints(blocks(document, "text")[0], printed), printed


def test_no_command_hides_in_a_block_that_is_not_run() -> None:
    hidden = [
        line for path in DOCUMENTS for text in blocks(path, "", "text", "bash") for line in text.splitlines()
    ]
    assert [line for line in hidden if re.match(r"\s*(\$ |make |\.venv/bin/)", line)] == []


DOCUMENTS_OF_TESTERS = ("README.md", "docs/testing.md", "docs/faults.md")
"""Documents whose Python blocks are files of tests, or programs, for somebody who has installed pytest and PocketMQ."""


@pytest.mark.slow
@pytest.mark.timeout(300)  # a pytest of its own for each of a dozen examples
@pytest.mark.parametrize("name", DOCUMENTS_OF_TESTERS)
def test_examples_of_tests_pass_in_a_pytest_of_their_own(name: str, tmp_path: Path) -> None:
    """Those with coroutine tests need pytest-asyncio, as the document says; the others have pytest alone."""
    examples = blocks(ROOT / name, "python")
    assert any("def test_" in program for program in examples)
    for number, program in enumerate(examples):
        folder = tmp_path / str(number)
        folder.mkdir()
        words = [sys.executable, "example.py"]
        file = folder / words[1]
        if "def test_" in program:
            file = folder / "test_example.py"
            words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
            if "async def test_" in program:
                assert program.count("async def test_") == program.count("@pytest.mark.asyncio\n")
                assert "`pip install pytest-asyncio`" in (ROOT / name).read_text(encoding="utf-8")
            else:
                words += ["-p", "no:asyncio"]
        file.write_text(program, encoding="utf-8")
        ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, program + ran.stdout + ran.stderr
        assert "skipped" not in ran.stdout
        assert "pytest" in words or all(map(str.strip, ran.stdout.splitlines())), "an empty line says nothing"


def test_starting_states_of_the_document_are_loaded_as_printed(tmp_path: Path) -> None:
    states = blocks(ROOT / "docs" / "testing.md", "yaml")
    assert states
    for state in states:
        (tmp_path / "state.yml").write_text(state, encoding="utf-8")
        with EmbeddedServer(load=[tmp_path / "state.yml"]) as server:
            rocketmq = RocketMQ(server)
            [order] = rocketmq.messages("orders")
            assert (order.text, order.keys) == ("order 17", ["17", "express"])
            assert [message.text for message in rocketmq.delayed] == ["later"]


def test_scenarios_of_the_document_can_be_read(tmp_path: Path) -> None:
    for number, scenario in enumerate(blocks(ROOT / "docs" / "behaviour.md", "yaml")):
        (tmp_path / f"{number}.yml").write_text(scenario, encoding="utf-8")
        assert read_scenario(str(tmp_path / f"{number}.yml")).about in scenario


def test_readme_is_short_and_begins_with_its_two_commands() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    assert {"make demo", "make test"} <= set(lines[:30])


def test_readme_stands_on_its_own_on_a_page_of_another_site() -> None:
    """Pages of package indexes show it without the files beside it."""
    text = FENCE.sub("", README.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(targets) > 20
    assert [target for target in targets if not target.startswith((BLOB, RAW))] == []


def test_figures_of_the_readme_are_measured_ones() -> None:
    results = (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8")
    listed = rows(section("Speed", README))
    assert len(listed) > 4
    assert [row for row in listed if f"| {' | '.join(row)} |" not in results] == []


PICTURES = ROOT / "docs" / "pictures"
DIAGRAMS = runpy.run_path(str(PICTURES / "diagrams.py"))["DIAGRAMS"]


@pytest.mark.parametrize("name", ["demo", "explain", *DIAGRAMS])
def test_picture_is_what_is_drawn_now(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make pictures` draws them anew."""
    monkeypatch.syspath_prepend(str(PICTURES))
    draw = DIAGRAMS.get(name) or runpy.run_path(str(PICTURES / "draw.py"))[name]
    assert draw() == (PICTURES / f"{name}.svg").read_text(encoding="utf-8")


# -- links and names


def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_links_lead_to_existing_targets(document: Path) -> None:
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        if target == f"{REPOSITORY}/security/advisories/new":
            continue  # a page of the host
        name = name.removeprefix(BLOB).removeprefix(RAW)
        assert "://" not in name, "documents stand on their own"
        folder = document.parent if name in target.split("#") else ROOT
        path = (folder / name).resolve() if name else document
        assert path.is_file(), target
        assert not anchor or path.suffix == ".png" or anchor in anchors(path), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=NAMES)
def test_files_named_with_their_folder_exist(document: Path) -> None:
    named = re.findall(
        rf"`((?:{'|'.join([*PACKAGES, 'tests', 'bench', 'docs'])})/[\w/.-]+\.\w+)`",
        document.read_text(),
    )
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_every_feature_of_the_stand_in_names_tests_that_exist() -> None:
    """By file and function, so that a test that is renamed or removed is missed here."""
    lines = [
        line
        for line in (ROOT / "tests" / "testing" / "stand-in.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith(("| Feature", "| Input"))
    ]
    assert len(lines) > 40
    without = [line.split("|")[1].strip() for line in lines if not check_named_tests(line)]
    assert without == []


def test_functions_named_in_the_architecture_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    pairs = re.findall(r"`([\w/]+\.py)` `([\w.]+)`", text)
    assert len(pairs) > 20
    assert [pair for pair in pairs if pair[1] not in defined(ROOT / pair[0])] == []


def defined(path: Path) -> set[str]:
    """Functions, classes and methods of a file, methods as `Class.method`."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            inner = (
                child.name
                for child in ast.walk(node)
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            )
            names |= {f"{node.name}.{name}" for name in inner}
    return names


MAPS = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("__init__.py"))


@pytest.mark.parametrize("path", MAPS, ids=[str(path.parent.relative_to(ROOT)) for path in MAPS])
def test_map_of_a_room_names_each_of_its_files(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    named = set(re.findall(r"(?<![\w/.])\w+(?:/(?!\w)|\.(?:py|md|tsv)\b)", text))
    files = {
        entry.name + "/" * entry.is_dir()
        for entry in path.parent.iterdir()
        if entry.suffix in (".py", ".md", ".tsv") or (entry.is_dir() and entry.name != "__pycache__")
    }
    assert named - files == set(), "named, but missing"
    assert files - named == {"__init__.py"}, "existing, but not named"


# -- tables


@pytest.mark.parametrize("handlers", [BROKER, NAME_SERVER], ids=lambda handlers: handlers.name)
def test_table_of_served_requests_is_what_is_served(handlers: Handlers) -> None:
    listed = [
        (int(code), name)
        for server, _, requests in rows(section("Served requests", COMPATIBILITY))
        for code, name in re.findall(r"(\d+) ([A-Z0-9_]+)", requests)
        if server == handlers.name
    ]
    assert len(listed) == len(set(listed))
    assert handler_modules.HANDLER_MODULES, "their import has filled the tables"
    assert sorted(listed) == sorted((code, one.request_type.name) for code, one in handlers.table.items())


def test_requests_that_emulation_leaves_out_are_named() -> None:
    sentence = re.search(
        r"With `emulate=4.9` the requests ([\d, and]+),", section("Served requests", COMPATIBILITY)
    )
    assert sentence is not None
    assert sorted(map(int, re.findall(r"\d+", sentence[1]))) == sorted(
        code for code, handler in BROKER.table.items() if handler.request_type.only_in == 5
    )


def test_table_of_admin_commands_names_each_command_and_calls_that_exist() -> None:
    text = section("Commands and calls", ROOT / "docs" / "command-line.md")
    listed = [name for row in rows(text) for name in row[0].split(", ")]
    assert sorted(listed) == sorted(command_rows())
    calls = {name for cells in rows(text) for name in re.findall(r"`([a-z]\w+)`", cells[1])}
    calls |= set(
        re.findall(r"`([a-z]\w+)`", re.findall(r"Calls without.*?\.$", text, re.DOTALL | re.MULTILINE)[0])
    )
    own = {
        name for name, _ in inspect.getmembers(AdminClient, inspect.isfunction) if not name.startswith("_")
    }
    assert calls <= own
    assert own - calls - {"start", "shutdown", "cluster_brokers", "broker_name_at"} == set()


def test_requests_not_served_are_answered_as_the_table_says(terminal: Terminal) -> None:
    terminal.run(".venv/bin/pocketmq serve --ephemeral")
    asked = 0
    with Peer(int(terminal.address.rpartition(":")[2])) as name_server:
        route = name_server.call(105, {"topic": "TBW102"})
        [port] = re.findall(rb"127\.0\.0\.1:(\d+)", route.body)
        with Peer(int(port)) as broker:
            for _, requests, answer in rows(section("Not served", COMPATIBILITY)):
                expected = int(answer.split()[0])
                for code in map(int, requests.split(", ")):
                    reply = broker.call(code)
                    assert (reply.code, reply.remark) == (expected, f" request type {code} not supported")
                    asked += 1
        assert name_server.call(9999).code == 3, "the name server says so too"
    assert asked > 10


def test_limits_are_those_of_the_program() -> None:
    limits = dict(row for row in rows(section("Limits", CONFIGURATION)) if len(row) == 2)
    config = BrokerConfig()
    assert limits["a frame, its length field included"] == f"{MAX_FRAME_BYTES >> 20} MiB"
    assert limits["a message body, a batch"].startswith(f"{config.store.max_message_size >> 20} MiB ")
    store = config.store
    hot = store.max_transfer_count_on_message_in_memory, store.max_transfer_bytes_on_message_in_memory
    cold = store.max_transfer_count_on_message_in_disk, store.max_transfer_bytes_on_message_in_disk
    for row, (count, size) in (("data in memory", hot), ("cold data", cold)):
        assert limits[f"one pull, {row}"].startswith(f"{count} messages or {size >> 10} KiB ")
    assert limits["suspended pulls"].startswith(f"{config.pull_thread_pool_queue_capacity} ")
    per_connection = (
        f"{config.max_tasks_per_connection}, {config.write_buffer_high_water_mark >> 20} MiB, "
        f"{config.server_channel_max_idle_time_seconds} s"
    )
    assert limits["a connection: requests that wait, unread bytes, silence"] == per_connection


def test_defaults_that_are_not_official_are_named() -> None:
    config, text = BrokerConfig(), section("Defaults that differ", CONFIGURATION)
    for key in config_keys.keys("broker").values():
        if key.verdict == "honoured" and key.default and key.name != "emulate":
            is_official = config_keys.displayed_value(config, key, is_5=config.is_5) == key.default
            assert is_official or f"`{key.name}`" in text, key.name


def test_keys_named_in_the_document_are_honoured() -> None:
    known = config_keys.keys("broker")
    text = section("Defaults that differ", CONFIGURATION) + section("Limits", CONFIGURATION)
    named = re.findall(r"`([a-z]+(?:[A-Z][A-Za-z0-9]*)+)`", text)
    assert len(named) > 10
    assert [
        name for name in named if name != "updateBrokerConfig" and known[name].verdict != "honoured"
    ] == []


FACTS = {
    Rule.RESET_PENDING: QueueFacts(reset_offset=7, stored_offset=7),
    Rule.STORED_OFFSET: QueueFacts(stored_offset=7, is_first_message_hot=True),
    Rule.DEFAULT_FORBIDDEN: QueueFacts(set_zero_if_not_found=False, is_first_message_hot=True),
    Rule.HISTORY_DELETED: QueueFacts(min_offset=3),
    Rule.FIRST_MESSAGE_HOT: QueueFacts(is_first_message_hot=True),
    Rule.FIRST_MESSAGE_COLD: QueueFacts(is_first_message_hot=False),
    Rule.NO_FIRST_MESSAGE: QueueFacts(),
    Rule.START_IS_SET: QueueFacts(new_groups_start_at="last", max_offset=7),
}
ANSWERS = {"that offset": 7, "not found": None, "**0**": 0}


def test_table_of_first_positions_is_what_the_rules_decide() -> None:
    listed = rows(section("What the broker answers", ROOT / "docs" / "first-position.md"))
    assert [row[0] for row in listed] == [rule.value for rule in Rule]
    for rule, (_, _, in_5, in_4) in zip(Rule, listed, strict=True):
        for emulate, answer in ((5, in_5), (4, in_4)):
            decision = decide(FACTS[rule], is_5=emulate == 5)
            if answer in ANSWERS:
                assert (decision.rule, decision.offset) == (rule, ANSWERS[answer]), (rule, emulate)
            else:
                assert decision.rule is not rule, "the table says that this line has no such rule"
