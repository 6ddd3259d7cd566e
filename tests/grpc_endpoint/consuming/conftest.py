"""Consumers of a broker without sockets: each rpc runs through its handler, as a connection would run it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.store import VirtualClock

from broker_fakes import FakeLoop, close_broker, make_broker
from grpc_consumers import Consumers

MakeConsumers = Callable[..., Consumers]


@pytest.fixture
async def broker(tmp_path: Path, clock: VirtualClock, loop: FakeLoop) -> AsyncIterator[Broker]:
    broker = make_broker(tmp_path / "store", clock, loop=loop, store={"timer_flush_interval_ms": 3_600_000})
    broker.delayed.timer.start()
    yield broker
    close_broker(broker)


@pytest.fixture
async def make_consumers(broker: Broker, loop: FakeLoop) -> AsyncIterator[MakeConsumers]:
    """`make_consumers(grpc_strict=True, ...)`: consumers of an endpoint with these settings. Topic `orders` has one
    queue and the messages m0 to m3, tags A and B in turn; group g has the member c1."""
    made: list[Consumers] = []

    def make(count: int = 4, **settings: Any) -> Consumers:
        consumers = Consumers(broker, loop, **settings)
        made.append(consumers)
        consumers.fill(count=count)
        consumers.group("g")
        consumers.announce("c1")
        return consumers

    yield make
    for consumers in made:
        consumers.consuming.stop()


@pytest.fixture
async def consumers(make_consumers: MakeConsumers) -> Consumers:
    return make_consumers()
