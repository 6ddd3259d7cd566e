"""Fixtures with other settings than those of the plug-in, for a conftest.py:

    from pocketmq.testing import factories

    old_server = factories.rocketmq_server(settings={"emulate": "4.9"}, load=["orders.yml"])
    old_rocketmq = factories.rocketmq("old_server")
    staging = factories.rocketmq_noproc("10.0.0.7:9876")

A fixture has the name of the variable. The server of a factory has the settings of the run, and those given on top.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pytest

from .fixtures.of_test import on_server

if TYPE_CHECKING:
    from .remote import RemoteRocketMQ
    from .rocketmq import RocketMQ
    from .server.embedded import EmbeddedServer

Scope = Literal["session", "package", "module", "class", "function"]


def rocketmq_server(
    settings: "Mapping[str, str | int | float | bool] | None" = None,
    *,
    load: Sequence[Any] = (),
    virtual_time: bool = False,
    seed: int | None = None,
    scope: Scope = "session",
) -> "Callable[..., Iterator[EmbeddedServer]]":
    """A fixture with a server of its own. What `load` makes stays for the life of the server."""

    @pytest.fixture(scope=scope)
    def server(request: pytest.FixtureRequest) -> "Iterator[EmbeddedServer]":
        """A RocketMQ server with settings of its own (`factories.rocketmq_server`)."""
        from .fixtures.servers import running_server

        with running_server(
            request, settings or {}, load=load, virtual_time=virtual_time, seed=seed
        ) as running:
            yield running

    return server


def rocketmq(server_fixture: str = "rocketmq_server") -> "Callable[..., Iterator[RocketMQ]]":
    """A fixture for one test on the server of another fixture. NAMESRV_ADDR is that server's for the test."""

    @pytest.fixture
    @on_server(server_fixture)
    def view(request: pytest.FixtureRequest) -> "Iterator[RocketMQ]":
        """A server for one test: that of another fixture, or one of its own if the marker asks for that. Everything
        that the test did is undone afterwards."""
        from .fixtures.one_test import rocketmq_for

        with rocketmq_for(request, server_fixture) as rocketmq:
            yield rocketmq

    return view


def rocketmq_noproc(addr: str | None = None) -> "Callable[..., Iterator[RemoteRocketMQ]]":
    """A fixture for one test on a server that already runs: at `addr`, or where `--rocketmq-addr` says."""

    @pytest.fixture
    @on_server(None)
    def view(request: pytest.FixtureRequest) -> "Iterator[RemoteRocketMQ]":
        """A server that already runs, for one test; `--rocketmq-addr` is the address of its name server."""
        from .fixtures.one_test import remote_for

        with remote_for(request, addr) as rocketmq:
            yield rocketmq

    return view
