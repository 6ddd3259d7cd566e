"""Fixtures: one running server of each side for the whole session, and fresh ones for tests that need their own.

    side             runs the test three times: on ours, on official 4.9.7 and on official 5.5.0
    asked_side       the same for tests by raw frames alone: on ours they are part of `make test`
    chosen_side      ours; with POCKETMQ_INTEROP_ALL=1 all three
    ours             our server alone; official: make an OfficialServer of a version
    fresh_server     make a server of a side with settings of its own; closed after the test

Servers of a session are shared: a test takes topic and group names of its own (fixture `names`) and stops
none of them.
"""

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.daily import DAILY, is_daily, with_java
from conformance.official import jars
from conformance.official.beside import StartBeside, java_beside
from conformance.official.servers import OfficialServer
from conformance.on_demand import ON_DEMAND, leave_out
from conformance.servers import namespaces
from conformance.servers.local_server import LocalServer
from conformance.servers.our_server import OurServer
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Names, Server, ServerOf, StartServer, started_at_first_use

HERE = Path(__file__).parent
SIDES = ("ours", "official-4.9", "official-5.5")
CHOSEN_SIDES = ("ours", *(pytest.param(side, marks=ON_DEMAND) for side in SIDES[1:]))
DAILY_LINES = tuple(pytest.param(side, marks=DAILY) for side in ("ours-4.9", "ours-5.5"))
EVERY_LINE = (*DAILY_LINES, *SIDES[1:])
TEST_TIMEOUT_S = 180


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.import_plugin("run_limits")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and not is_daily(item):
            item.add_marker("interop")
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_S))
    config.hook.pytest_deselected(items=list(leave_out(items)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker runs a whole file: tests that share slowly started servers stay together."""
    if config.option.markexpr != "interop":
        return None  # the daily tests are distributed one by one
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


@pytest.fixture(scope="session")
def peers() -> None:
    """Skips if Java, Maven, the jars or network namespaces are missing; fetches missing jars."""
    reason = jars.why_unavailable() or namespaces.why_unavailable()
    if reason:
        pytest.skip(reason)
    try:
        for version in jars.VERSIONS:
            jars.jars(version)
    except jars.PeersUnavailable as unavailable:
        pytest.skip(str(unavailable))


def make_server(side: str, home: Path, **options: Any) -> Server:
    """`ours` is `ours-5.5`: the line it emulates."""
    kind, _, line = side.partition("-")
    if kind == "ours":
        return OurServer(home, line=line or "5.5", **options)
    return OfficialServer(line, home, **options)


def open_server(request: pytest.FixtureRequest, side: str, home: Path, **options: Any) -> Server:
    """Ours on this machine's network if the run has no official programs; else each server in a namespace."""
    if side.startswith("ours") and not with_java(request):
        return LocalServer(home, line=side.removeprefix("ours-") if "-" in side else "5.5", **options)
    request.getfixturevalue("peers")
    return make_server(side, home, **options)


def server_of_a_file(broker_conf: Mapping[str, object]) -> Any:
    """The fixture `server` of a file: each line of ours and of the official broker, with these settings."""

    @pytest.fixture(scope="module", params=(*DAILY_LINES, *CHOSEN_SIDES[1:]))
    def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
        home = tmp_path_factory.mktemp(request.param)
        with open_server(request, request.param, home, broker_conf=broker_conf) as made:
            yield made

    return server


@pytest.fixture(scope="session")
def session_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerOf]:
    """The one server of a side that the session shares, started at its first use."""
    with started_at_first_use(lambda side: open_server(request, side, tmp_path_factory.mktemp(side))) as get:
        yield get


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest, session_server: ServerOf) -> Server:
    return session_server(request.param)


@pytest.fixture(params=(pytest.param("ours", marks=DAILY), *SIDES[1:]))
def asked_side(request: pytest.FixtureRequest, session_server: ServerOf) -> Server:
    return session_server(request.param)


@pytest.fixture(params=CHOSEN_SIDES)
def chosen_side(request: pytest.FixtureRequest, session_server: ServerOf) -> Server:
    return session_server(request.param)


@pytest.fixture
def ours(session_server: ServerOf) -> Server:
    return session_server("ours")


@pytest.fixture
def fresh_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StartServer]:
    """fresh_server(side, **options of OurServer or OfficialServer): started, closed after the test."""
    made: list[Server] = []

    def make(side: str, **options: Any) -> Server:
        server = open_server(request, side, tmp_path / f"{len(made)}-{side}", **options)
        made.append(server)
        server.start()
        return server

    yield make
    for server in made:
        server.close()


@pytest.fixture
def client(server: Server) -> Iterator[RawClient]:
    """A connection to the `server` of a file."""
    with RawClient(server) as made:
        yield made


@pytest.fixture(params=jars.VERSIONS)
def version(request: pytest.FixtureRequest, peers: None) -> str:
    """Of a Java client."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def java(tmp_path: Path, version: str) -> Iterator[StartBeside]:
    """Starts Java programs of ours at a server in this process."""
    with java_beside(version, tmp_path) as start:
        yield start


@pytest.fixture
def names() -> Names:
    """names("orders") is a topic or group name no other test uses."""
    suffix = uuid.uuid4().hex[:8]
    return lambda word: f"{word}_{suffix}"
