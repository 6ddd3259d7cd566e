"""The pytest plug-in: a RocketMQ server as a fixture.

    def test_order_is_billed(rocketmq):
        orders = rocketmq.topic("orders")
        ...

    rocketmq_server     session     an `EmbeddedServer`; NAMESRV_ADDR is its address while it runs
    rocketmq            function    a `RocketMQ` on it, with names of this test; everything it did is undone
    rocketmq_noproc     function    the same over the wire, on a server that already runs (--rocketmq-addr)
    rocketmq_settings   session     keys of broker.conf, for a conftest.py to override

and the marker `rocketmq(topics=, groups=, settings=, ...)`: `fixtures/one_test.py`. More fixtures: `factories.py`.

pytest loads this file at every start, so nothing of the server is imported before a test asks for it.
"""

from collections.abc import Generator
from types import ModuleType
from typing import Any, Final

import pytest

from . import factories
from .fixtures.of_test import SESSION_SERVER, give_own_server, put_server_first, session_server, views

_LAST_REQUESTS: Final = 20
"""Requests in the report of a failed test."""


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
    address = "name server of a server that already runs, for rocketmq_noproc"
    group.addoption("--rocketmq-addr", metavar="HOST:PORT", help=address)
    parser.addini("rocketmq_addr", address)
    parser.addini("rocketmq_emulate", emulate)
    parser.addini("rocketmq_conf", f"{conf}; relative to the ini file", type="string")
    parser.addini("rocketmq_set", "keys of broker.conf: one KEY=VALUE a line", type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "rocketmq(topics=, groups=, load=, ledger=, strict=, settings=, emulate=, virtual_time=, seed=, "
        "newGroupsStartAt=): what the RocketMQ server of the test has and does; the last five give it a server of its "
        "own",
    )


@pytest.fixture(scope="session")
def rocketmq_settings() -> dict[str, str | int | float | bool]:
    """Keys of broker.conf for the session's server. Override it in conftest.py."""
    return {}


rocketmq_server = pytest.fixture(scope="session", name=SESSION_SERVER)(session_server)
rocketmq = factories.rocketmq()
rocketmq_noproc = factories.rocketmq_noproc()


def pytest_plugin_registered(plugin: object) -> None:
    """A conftest.py is a plug-in."""
    if isinstance(plugin, ModuleType):
        give_own_server(plugin)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makemodule() -> "Generator[None, pytest.Module | None, pytest.Module | None]":
    module = yield
    if module is not None:
        import_module: Any = module._getobj

        def import_and_give() -> ModuleType:
            found: ModuleType = import_module()
            give_own_server(found)
            return found

        module._getobj = import_and_give  # type: ignore[method-assign]
    return module


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(obj: object) -> None:
    if isinstance(obj, type):
        give_own_server(obj)


def pytest_itemcollected(item: pytest.Item) -> None:
    put_server_first(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test fails if it leaves rules unused; a strict one also if a group has no clean verdict."""
    result = yield
    complaints: list[AssertionError] = []
    for rocketmq in views(item):
        try:
            rocketmq.faults.check()
            if rocketmq.is_strict:
                rocketmq.ledger.assert_all_clean()
        except AssertionError as error:
            complaints.append(error)
    if complaints:
        raise type(complaints[0])("\n".join(map(str, complaints)))
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The report of a failed test carries its last requests."""
    report = yield
    if report.when == "call" and report.failed:
        for rocketmq in views(item):
            if text := rocketmq.requests.report(_LAST_REQUESTS):
                title = f"the last {_LAST_REQUESTS} requests to the RocketMQ server"
                report.sections.append((title, text))
    return report
