"""How long does a call wait that needs a host in trouble, and one that does not?

    python -m bench.client_floor

A producer with 40 healthy queues on four brokers, and a host in trouble beside them, on the network in memory of the
client's tests: its clock jumps, so the figures are exact and the same on every machine. Eight calls that need the host
in trouble and eight that do not start together, each with a timeout of one second. A row gives the longest wait of both
kinds in seconds, how many of the former failed, and what became of one more call a second later. The last column is
what the official client (5.5) does by its code: it connects for three seconds whatever the timeout of a send, asks for
routes under one lock, closes a connection when one request on it times out, and asks for known routes every 30 s.
"""

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from pocketmq.client import Producer, SendFailed
from pocketmq.protocol.message.message_queue import MessageQueue

from client_network import BLACK_HOLE, REFUSING, SILENT, Network, broker, name_server, passed, route, timed

NAMESRV = "ns:9876"
TIMEOUT_MS = 1_000
SEATS = 8
"""Calls of each kind."""


def black_hole(network: Network) -> None:
    network.hosts["bad:1"] = BLACK_HOLE
    network.drop("bad:1")


def dead(network: Network) -> None:
    network.hosts["bad:1"] = REFUSING
    network.drop("bad:1")


def silent(network: Network) -> None:
    network.hosts["bad:1"] = SILENT


def name_server_hangs(network: Network) -> None:
    network.hosts[NAMESRV] = SILENT


def moved(network: "Floor") -> None:
    network.hosts["bad:2"] = network.hosts["bad:1"]
    network.hosts["bad:1"] = REFUSING
    network.drop("bad:1")
    network.routes["Bad"] = route({"bad": "bad:2"})


ROWS: dict[str, tuple[Callable[["Floor"], None], str, str]] = {
    "black hole, or a full backlog": (black_hole, "Bad", "3 s"),
    "dead host beside 40 healthy queues": (dead, "Bad", "at once"),
    "accepts and is silent": (silent, "Bad", "1 s"),
    "name server hangs, new topic": (name_server_hangs, "New", "3 s and more"),
    "broker moved": (moved, "Bad", "fails for up to 30 s"),
}


class Floor(Network):
    """Five brokers: the topic T on four of them, Bad on the fifth."""

    def __init__(self) -> None:
        super().__init__()
        good = {f"b{number}": f"b{number}:1" for number in range(4)}
        self.routes = {"T": route(good, queues=10), "Bad": route({"bad": "bad:1"})}
        self.hosts = {address: broker() for address in (*good.values(), "bad:1")}
        self.hosts[NAMESRV] = name_server(self.routes)

    def measure(self, trouble: Callable[["Floor"], None], topic: str) -> tuple[float, float, int, str]:
        """The longest wait of a healthy call and of one in trouble, how many of the latter fail, and what becomes of
        one more a moment later."""

        async def scenario() -> tuple[float, float, int, str]:
            async with Producer("p", namesrv_addr=NAMESRV, client_ip="10.0.0.9") as producer:
                for number in range(40):
                    await producer.send("T", b"x", queue=MessageQueue("T", f"b{number % 4}", number // 4))
                await producer.send("Bad", b"x")
                trouble(self)
                await passed(0.001)
                healthy = [timed(producer.send("T", b"x")) for _ in range(SEATS)]
                failing = [timed(producer.send(topic, b"x", timeout_ms=TIMEOUT_MS)) for _ in range(SEATS)]
                outcomes = await asyncio.gather(*healthy, *failing)
                waits = [seconds for seconds, _ in outcomes]
                failed = sum(isinstance(result, SendFailed) for _, result in outcomes[SEATS:])
                await passed(1)
                waited, result = await timed(producer.send(topic, b"x", timeout_ms=TIMEOUT_MS))
                later = f"{'failed' if isinstance(result, SendFailed) else 'stored'} {waited:.3f}s"
                return max(waits[:SEATS]), max(waits[SEATS:]), failed, later

        found: tuple[float, float, int, str] = self.run(scenario)
        return found


def main() -> None:
    """Measure every row and print the table."""
    logging.disable()
    print(f"{'':36}{'healthy':>9}{'in trouble':>12}{'failed':>8}{'later':>15}   official client")
    for name, (trouble, topic, official) in ROWS.items():
        healthy, failing, failed, later = Floor().measure(trouble, topic)
        print(f"{name:36}{healthy:>8.3f}s{failing:>11.3f}s{failed:>8}{later:>15}   {official}")


if __name__ == "__main__":
    main()
