"""A server for clients, ours (friendly) or the official proxy: waits are short, groups retry quickly.

A client that closes waits for the receive that is under way; so the longest wait is the shortest that is allowed.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from conformance.official.local_proxy import LocalProxy
from conformance.on_demand import ON_DEMAND
from conformance.servers.our_server import OurServer
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server

ENDPOINT = "127.0.0.1:8081"
SHORT_WAITS = {"grpcClientConsumerMaxLongPollingTimeoutMillis": 5000}
QUICK = [1000, 1000, 1000, 1000]
"""Delays of a retry, in ms."""


def make_endpoint(
    side: str,
    home: Path,
    broker_conf: Mapping[str, object] | None = None,
    proxy_settings: Mapping[str, object] | None = None,
) -> Server:
    """A server that is not started yet. `side` is `ours` or `official-proxy`; ours reads both kinds of settings from
    its one broker.conf."""
    ours, its = dict(broker_conf or {}), {**SHORT_WAITS, **(proxy_settings or {})}
    if side == "ours":
        return OurServer(home, broker_conf={**ours, **its}, options=("--grpc-port", "8081"))
    return LocalProxy(home, broker_conf=ours, proxy_settings=its)


def endpoint_fixture(
    scope: Literal["function", "module"],
    prepare: Callable[[Server], None] = lambda _: None,
    *settings: Mapping[str, object],
) -> Any:
    """The fixture `server` of a file: each side in turn, started and prepared; `settings` as for `make_endpoint`."""

    @pytest.fixture(scope=scope, params=["ours", pytest.param("official-proxy", marks=ON_DEMAND)])
    def server(
        request: pytest.FixtureRequest, peers: None, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Server]:
        with make_endpoint(request.param, tmp_path_factory.mktemp(request.param), *settings) as made:
            prepare(made)
            yield made

    return server


def make_topic(client: RawClient, name: str, kind: str, queues: int = 4) -> None:
    client.update_topic(name, queues, attributes=f"+message.type={kind}")


def make_group(client: RawClient, name: str, **settings: object) -> None:
    """A group that retries quickly, at most twice."""
    policy = {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": QUICK}}
    of = {"groupName": name, "consumeEnable": True, "retryMaxTimes": 2, "groupRetryPolicy": policy}
    assert client.call(200, json.dumps({**of, **settings}).encode()).code == 0
