"""The pytest plug-in: a RocketMQ server as a fixture.

    def test_order_is_billed(rocketmq):
        orders = rocketmq.topic("orders")
        ...

    rocketmq_server     session     an `EmbeddedServer`; NAMESRV_ADDR is its address while it runs
    rocketmq            function    a `RocketMQ` on it, with names of this test; everything it created is removed
    rocketmq_settings   session     keys of broker.conf, for a conftest.py to override

pytest loads this file at every start, so nothing of the server is imported before a test asks for it.
"""

import itertools
import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from .rocketmq import RocketMQ
    from .server.embedded import EmbeddedServer

ADDRESS: Final = "NAMESRV_ADDR"
"""The environment variable that official clients of all languages read."""
_LAST_REQUESTS: Final = 20
"""Requests in the report of a failed test."""
_numbers: Final = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rocketmq", "RocketMQ server in this process (pocketmq)")
    emulate = "official line to follow where 4.9 and 5 differ: 4.9 or 5"
    conf = "broker.conf with settings of the server"
    group.addoption("--rocketmq-emulate", metavar="LINE", help=emulate)
    group.addoption("--rocketmq-conf", metavar="FILE", help=conf)
    group.addoption(
        "--rocketmq-set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one key of broker.conf; repeatable, overrides the ini file and rocketmq_settings",
    )
    parser.addini("rocketmq_emulate", emulate)
    parser.addini("rocketmq_conf", f"{conf}; relative to the ini file", type="string")
    parser.addini("rocketmq_set", "keys of broker.conf: one KEY=VALUE a line", type="linelist")


@pytest.fixture(scope="session")
def rocketmq_settings() -> dict[str, str | int | float | bool]:
    """Keys of broker.conf for the session's server. Override it in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def rocketmq_server(
    pytestconfig: pytest.Config, rocketmq_settings: dict[str, str | int | float | bool]
) -> "Iterator[EmbeddedServer]":
    """Name server and broker of the whole session, in a thread of this process."""
    from pocketmq.broker.errors import StartError
    from pocketmq.store.errors import StoreError

    from .server.embedded import EmbeddedServer

    settings = {
        **_words(pytestconfig.getini("rocketmq_set")),
        **_emulate(pytestconfig.getini("rocketmq_emulate")),
        **rocketmq_settings,
        **_words(pytestconfig.getoption("rocketmq_set")),
        **_emulate(pytestconfig.getoption("rocketmq_emulate")),
    }
    try:
        server = EmbeddedServer(settings, conf=_conf(pytestconfig)).start()
    except (StartError, StoreError) as error:
        pytest.fail(f"RocketMQ server: {error}", pytrace=False)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(ADDRESS, server.namesrv_addr)
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def rocketmq(rocketmq_server: "EmbeddedServer") -> "Iterator[RocketMQ]":
    """The server for one test. Topics, groups and settings that the test creates or changes are undone afterwards."""
    from .rocketmq import RocketMQ

    mark = rocketmq_server.mark()
    rocketmq_server.requests.clear()
    yield RocketMQ(rocketmq_server, f"t{next(_numbers)}-")
    rocketmq_server.faults.clear()
    rocketmq_server.reset(mark)


def _rocketmq_of(item: pytest.Item) -> "RocketMQ | None":
    """The test's, if it has one."""
    found: RocketMQ | None = getattr(item, "funcargs", {}).get("rocketmq")
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test fails if it leaves rules unused."""
    result = yield
    rocketmq = _rocketmq_of(item)
    if rocketmq is not None:
        rocketmq.faults.check()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The report of a failed test carries its last requests."""
    report = yield
    rocketmq = _rocketmq_of(item)
    if report.when == "call" and report.failed and rocketmq is not None:
        text = rocketmq.requests.report(_LAST_REQUESTS)
        if text:
            report.sections.append((f"the last {_LAST_REQUESTS} requests to the RocketMQ server", text))
    return report


def _words(words: list[str]) -> dict[str, str]:
    settings = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise pytest.UsageError(f"rocketmq_set, --rocketmq-set: {word} is not KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings


def _emulate(line: str | None) -> dict[str, str]:
    return {"emulate": line} if line else {}


def _conf(pytestconfig: pytest.Config) -> str | None:
    """A path on the command line is relative to the working directory, one in the ini file to that file."""
    given: str | None = pytestconfig.getoption("rocketmq_conf")
    if given:
        return os.path.join(pytestconfig.invocation_params.dir, given)
    listed: str = pytestconfig.getini("rocketmq_conf")
    folder = pytestconfig.rootpath if pytestconfig.inipath is None else pytestconfig.inipath.parent
    return os.path.join(folder, listed) if listed else None
