"""Fixtures of the endpoint's tests: its parts on a broker without sockets. See `grpc_calls.py`."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pocketmq.testing import RocketMQ

from broker.conftest import broker_maker, clock, loop
from broker_fakes import MakeBroker
from grpc_calls import GrpcBroker
from grpc_companion import companion

__all__ = ("broker_maker", "clock", "loop")
"""Fixtures of the broker's tests."""
MakeGrpc = Callable[..., GrpcBroker]


@pytest.fixture
def grpc_maker(broker_maker: MakeBroker) -> MakeGrpc:
    """`grpc_maker(strict=True, some_broker_setting=...)`: endpoint settings in `endpoint={...}` and `strict`."""

    def make(*, strict: bool = False, endpoint: dict[str, Any] | None = None, **settings: Any) -> GrpcBroker:
        return GrpcBroker(broker_maker(**settings), grpc_strict=strict, **(endpoint or {}))

    return make


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
