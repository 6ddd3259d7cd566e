"""The official gRPC clients of five languages: each has a program that takes the same words and prints the same lines.

    PROGRAM ENDPOINT plain|tls USER PASSWORD PREFIX STEP...

`-` as USER signs nothing; PREFIX begins the names of topics and groups. Each step prints a line, or why the client
refused: `SEND refused ...`. After the last one comes DONE.

    send          ten messages                                                   SEND m0 ... m9
    simple        a simple consumer gets them; it hides m3 for ten seconds       SIMPLE m0 ... m9
    push          a push consumer gets them; m5 fails once                       PUSH m0/1 ... m5/1 m5/2 ...
    fifo          six messages of one message group, to a simple consumer        FIFO f0 ... f5
    order         the same to a push consumer; f3 fails once                     ORDER f0 f1 f2 f3 f3 f4 f5
    transaction   one is rolled back, one committed                              TRANSACTION committed
    check         one is left open: the broker asks, the client commits          CHECK forgotten
    delay         one that is due in five seconds                                DELAY d late
    recall        two that are due in six; the first is recalled by its handle   RECALL same kept
    filters       ten for two push consumers: the first by tags, the other by SQL       FILTERS m1 ... m9 (Java alone)
    dead          every delivery of one fails, in a push consumer                TRIED bad attempt tag keys a
    deadfifo      the same in order                                              the same
    member        a push consumer of what others send                            GOT body attempt tag keys a

The last three end by themselves only after a while. What a client lacks is in `LACKS`. Packages are fetched, and
programs built, at their first use; a client that cannot be had is skipped.
"""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conformance.clients.foreign import (
    go_program,
    grpc_node_packages,
    grpc_python_packages,
    rust_program,
)
from conformance.grpc_clients.consumer_side import ENDPOINT, make_group, make_topic
from conformance.official.jars import PeersUnavailable, cache
from conformance.official.local_proxy import LIBRARIES, library
from conformance.official.programs import compiled
from conformance.on_demand import ON_DEMAND
from conformance.servers.namespaces import clean_environment
from conformance.servers.processes import Running
from conformance.servers.raw_client import RawClient
from conformance.servers.server import Server

PROGRAMS = Path(__file__).parent / "programs"
ONCE = [f"m{number}/1" for number in range(10)]
SAID = {
    "send": [f"m{number}" for number in range(10)],
    "simple": [f"m{number}" for number in range(10)],
    "push": sorted([*ONCE, "m5/2"]),
    "fifo": [f"f{number}" for number in range(6)],
    "order": ["f0", "f1", "f2", "f3", "f3", "f4", "f5"],
    "transaction": ["committed"],
    "check": ["forgotten"],
    "delay": ["d", "late"],
    "recall": ["same", "kept"],
    "filters": ["m1", "m2", "m4", "m5", "m7", "m8", "m6", "m7", "m8", "m9"],
}
"""What the steps print."""

LACKS: Mapping[str, frozenset[str]] = {
    "java-5.0.7": frozenset({"recall"}),
    "rust": frozenset({"push", "order", "recall", "dead", "deadfifo", "tls"}),
}
"""Java 5.0.7 and Rust 5.0.0 have no RecallMessage. Rust has no push consumer; its TLS configuration is commented out in
its source."""

DIFFERS: Mapping[str, Mapping[str, list[str]]] = {
    "node": {"order": ["f0", "f1", "f2", "f3", "f4", "f5"]},
    "go": {"order": ["f0", "f1", "f2", "f3", "f4", "f5", "f3"]},
}
"""Node 1.0.8 reads no customized retry policy: in order, the first failure makes a dead letter (the
same at the official proxy). Go 5.1.4 passes the next message to its listener while a failed one waits."""

TOPICS = {
    "Normal": "NORMAL",
    "Fifo": "FIFO",
    "Order": "FIFO",
    "Trans": "TRANSACTION",
    "Delay": "DELAY",
    "Bad": "NORMAL",
    "BadFifo": "FIFO",
}
GROUPS = ("simple", "push", "trans", "delay", "bad", "member", "bytag", "bysql")
ORDERLY = ("fifo", "order", "badfifo")

Client = tuple[list[str], dict[str, str]]
"""Command and environment."""


def java_client(version: str) -> Client:
    home, class_path = cache() / LIBRARIES[version], library(LIBRARIES[version])
    classes = compiled(PROGRAMS / "Talk.java", class_path, home)
    options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Duser.home={home}")
    return ["java", *options, "-cp", f"{classes}:{class_path}", "Talk"], {}


def python_client() -> Client:
    return [sys.executable, str(PROGRAMS / "talk.py")], {"PYTHONPATH": str(grpc_python_packages())}


def node_client() -> Client:
    return ["node", str(PROGRAMS / "talk.js")], {"NODE_PATH": str(grpc_node_packages())}


def go_client() -> Client:
    return [str(go_program(PROGRAMS / "go_talk"))], {}


def rust_client() -> Client:
    return [str(rust_program(PROGRAMS / "rust", "grpctalk"))], {}


CLIENTS: Mapping[str, Callable[[], Client]] = {
    **{f"java-{version}": partial(java_client, version) for version in LIBRARIES},
    "python": python_client,
    "node": node_client,
    "go": go_client,
    "rust": rust_client,
}
NAMES: list[Any] = [
    "java-5.0.7",
    "java-5.2.0",
    "python",
    "node",
    pytest.param("go", marks=ON_DEMAND),
    pytest.param("rust", marks=ON_DEMAND),
]
"""For a test of all; the programs of the last two have to be built."""
PUSHING = NAMES[:-1]
"""Those with a push consumer, and with TLS."""


def had(name: str) -> Client:
    """The client's command; skips the test if it cannot be had."""
    try:
        return CLIENTS[name]()
    except PeersUnavailable as why:
        pytest.skip(str(why))


def make_places(client: RawClient, prefix: str) -> None:
    """The topics and groups of one run."""
    for word, kind in TOPICS.items():
        make_topic(client, f"{prefix}_{word}", kind)
    for word in GROUPS:
        make_group(client, f"{prefix}_{word}")
    for word in ORDERLY:
        make_group(client, f"{prefix}_{word}", consumeMessageOrderly=True)


def start(
    server: Server,
    name: str,
    home: Path,
    prefix: str,
    *steps: str,
    transport: str = "plain",
    user: tuple[str, str] = ("-", "-"),
    **environment: str,
) -> Running:
    """The program of a client, started."""
    command, its = had(name)
    if name == "rust":
        _give_a_mac_address(server, home)
    return Running(
        server.namespace,
        [*command, ENDPOINT, transport, *user, prefix, *steps],
        home / f"{name}.out",
        name=name,
        env=clean_environment(HOME=str(home), **its, **environment),
        separate_errors=True,
    )


def lines(running: Running, seconds: float = 400) -> dict[str, list[str]]:
    """The words of each step, after the last one."""
    with running:
        running.wait_for("^DONE$", timeout=seconds)
    return step_lines(running.output)


def step_lines(text: str) -> dict[str, list[str]]:
    words = [line.split() for line in text.splitlines()]
    return {first.lower(): rest for first, *rest in filter(None, words) if first.lower() in SAID}


def able(name: str, *steps: str) -> list[str]:
    """Those of the steps that the client has."""
    return [step for step in steps if step not in LACKS.get(name, ())]


def expected(name: str, steps: list[str]) -> dict[str, list[str]]:
    return {step: DIFFERS.get(name, {}).get(step, SAID[step]) for step in steps}


def _give_a_mac_address(server: Server, home: Path) -> None:
    """The Rust client makes its message ids of one; the loopback interface has none."""
    there = Running(server.namespace, ["ip", "link", "show", "v0"], home / "ip-show.out")
    with there:
        if there.finish(10) == 0:
            return
    add = ["ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"]
    with Running(server.namespace, add, home / "ip.out") as running:
        if running.finish(10) != 0:
            pytest.skip(f"no interface with a MAC address: {running.output.strip()}")
