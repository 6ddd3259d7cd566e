"""Fixtures of the endpoint's tests: its parts on a broker without sockets. See `grpc_calls.py`."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.store import VirtualClock
from pocketmq.testing import RocketMQ

from broker_fakes import FakeLoop, close_broker, make_broker
from grpc_calls import GrpcBroker
from grpc_companion import companion

MakeGrpc = Callable[..., GrpcBroker]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def loop(clock: VirtualClock) -> FakeLoop:
    """The timers of every fake broker of a test."""
    return FakeLoop(clock)


@pytest.fixture
async def grpc_maker(tmp_path: Path, clock: VirtualClock, loop: FakeLoop) -> AsyncIterator[MakeGrpc]:
    """`grpc_maker(strict=True, some_broker_setting=...)`: endpoint settings in `endpoint={...}` and `strict`."""
    made: list[Broker] = []

    def make(*, strict: bool = False, endpoint: dict[str, Any] | None = None, **settings: Any) -> GrpcBroker:
        broker = make_broker(tmp_path / f"store-{len(made)}", clock, loop=loop, **settings)
        made.append(broker)
        return GrpcBroker(broker, grpc_strict=strict, **(endpoint or {}))

    yield make
    for broker in made:
        close_broker(broker)


@pytest.fixture
async def grpc(grpc_maker: MakeGrpc) -> GrpcBroker:
    """A friendly endpoint."""
    return grpc_maker()


@pytest.fixture
async def strict(grpc_maker: MakeGrpc) -> GrpcBroker:
    """An endpoint with grpcStrict=true."""
    return grpc_maker(strict=True)


@pytest.fixture
async def rocketmq() -> AsyncIterator[RocketMQ]:
    """A server in virtual time, whose ledger is kept."""
    async with companion(ledger=True, virtual_time=True) as rocketmq:
        yield rocketmq
