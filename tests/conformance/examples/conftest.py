"""The worlds in which every example test runs: our server as either official line, with either client and header.

POCKETMQ_INTEROP_ALL=1 adds the official servers: the same tests must pass there. The first use of a world opens all
chosen worlds in the background: their consumers commit while other worlds are checked.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.conftest import make_server
from conformance.examples.world import BROKER_CONF, World
from conformance.official.programs import BINARY_HEADER
from conformance.on_demand import chosen


@dataclass(frozen=True)
class Combination:
    """A server side, the line it emulates if it is ours, and the client that runs there."""

    side: str
    client: str
    emulate: str = ""
    binary_header: bool = False

    def __str__(self) -> str:
        server = f"{self.side}-as-{self.emulate}" if self.emulate else self.side
        return f"{server}-client-{self.client}{'-binary' if self.binary_header else ''}"


ALWAYS = (
    Combination("ours", "4.9", emulate="4.9"),
    Combination("ours", "5.5", emulate="5"),
    Combination("ours", "4.9", emulate="5", binary_header=True),
    Combination("ours", "5.5", emulate="4.9", binary_header=True),
)
ON_DEMAND = (
    Combination("official-4.9", "4.9"),
    Combination("official-5.5", "5.5"),
    Combination("official-5.5", "4.9", binary_header=True),
    Combination("official-4.9", "5.5", binary_header=True),
)
CHOSEN = chosen(ALWAYS, ON_DEMAND)
AT_ONCE = 2


def open_world(chosen: Combination, home: Path) -> World:
    options = {"emulate": chosen.emulate} if chosen.emulate else {}
    server = make_server(chosen.side, home, broker_conf=BROKER_CONF, **options)
    try:
        server.start()
        world = World(server, chosen.client, BINARY_HEADER if chosen.binary_header else ())
        world.open()
    except BaseException:
        server.close()
        raise
    return world


@pytest.fixture(scope="session")
def worlds(
    request: pytest.FixtureRequest, peers: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Combination], World]]:
    """The opened world of a combination; a world that no test of this run uses is not opened."""
    parameters = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    used = [chosen for chosen in CHOSEN if any(params.get("world") is chosen for params in parameters)]
    with ThreadPoolExecutor(AT_ONCE) as openers:
        opening = {
            chosen: openers.submit(open_world, chosen, tmp_path_factory.mktemp(f"examples-{chosen}"))
            for chosen in used
        }
        yield lambda chosen: opening[chosen].result()
    for future in opening.values():
        if future.exception() is None:
            future.result().server.close()


@pytest.fixture(scope="session", params=CHOSEN, ids=str)
def world(request: pytest.FixtureRequest, worlds: Callable[[Combination], World]) -> World:
    return worlds(request.param)
