"""Fixtures of the broker's tests: a broker without sockets, for each official line. See `broker_fakes.py`."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.store import VirtualClock

from broker_fakes import FakeLoop, MakeBroker, close_broker, make_broker


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def loop(clock: VirtualClock) -> FakeLoop:
    """The timers of every fake broker of a test."""
    return FakeLoop(clock)


@pytest.fixture
async def broker_maker(tmp_path: Path, clock: VirtualClock, loop: FakeLoop) -> AsyncIterator[MakeBroker]:
    """`broker_maker(emulate=4, some_setting=...)`: as many brokers as a test wants, closed at its end."""
    brokers: list[Broker] = []

    def make(**settings: Any) -> Broker:
        broker = make_broker(tmp_path / f"store-{len(brokers)}", clock, loop=loop, **settings)
        brokers.append(broker)
        return broker

    yield make
    for broker in brokers:
        close_broker(broker)


@pytest.fixture
async def broker(broker_maker: MakeBroker) -> Broker:
    """A broker of the 5.x line."""
    return broker_maker()


@pytest.fixture
async def broker4(broker_maker: MakeBroker) -> Broker:
    """A broker of the 4.9 line."""
    return broker_maker(emulate=4)


@pytest.fixture
async def syncing(broker_maker: MakeBroker) -> Broker:
    """A broker that answers once a message is on disk."""
    return broker_maker(store={"flush_disk_type": "SYNC_FLUSH"})
