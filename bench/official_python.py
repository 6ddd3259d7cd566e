"""How fast is our Python client beside the official one, against one server in the same run?

    python -m bench.official_python --python VENV/bin/python [--seconds 5] [--turns 3]
        [--endpoint HOST:PORT --namesrv HOST:PORT]

VENV is an environment with `rocketmq-python-client` (the official client, over gRPC); without it one line says so. Both
clients take turns on one server of ours, which has both ports, or on the official broker and proxy at the addresses
given. Each load runs in a process of its own; the medians of the turns count, and their ratio: on a machine that does
other work too, the processor time of a message is more reliable than the rate. What was sent is read by `receive`, by a
new group each time.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pocketmq.client import AdminClient, SubscriptionGroupConfig

from .frame import print_load_average, served
from .python_side import TOPIC

SIDE: Final = Path(__file__).with_name("python_side.py")
LOADS: Final = {
    "send": "sends, one after the other",
    "send64": "sends, 64 at once",
    "receive": "received and acknowledged",
}


@contextlib.contextmanager
def both_ports(folder: str, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The name server and the gRPC endpoint."""
    if options.endpoint is not None:
        yield options.namesrv, options.endpoint
        return
    with served(Path(folder) / "store", "--topic", TOPIC, "--grpc-port", "0") as server:
        yield server.namesrv, server.output.readline().strip().partition("=")[2]


async def create_group(namesrv: str, group: str) -> None:
    """The official proxy refuses the receives of a group that does not exist."""
    async with AdminClient(namesrv_addr=namesrv) as admin:
        await admin.update_group(SubscriptionGroupConfig(group_name=group), cluster="DefaultCluster")


def run(
    python: str, home: str, side: str, load: str, address: str, seconds: float, group: str
) -> dict[str, float]:
    """The figures of one process. The official client writes its log below HOME."""
    command = [python, str(SIDE), side, load, address, str(seconds), group]
    environment = {**os.environ, "HOME": home, "PYTHONSAFEPATH": "1"}
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Measure all loads and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="an interpreter with rocketmq-python-client")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--endpoint", help="the gRPC endpoint of an official proxy; a server of ours by default"
    )
    parser.add_argument("--namesrv", help="the name server beside it")
    options = parser.parse_args()
    if subprocess.run(
        [options.python, "-c", "import rocketmq.v5"], capture_output=True, check=False
    ).returncode:
        print(f"skipped: {options.python} has no rocketmq-python-client")
        return
    with tempfile.TemporaryDirectory() as folder, both_ports(folder, options) as (namesrv, endpoint):
        print_load_average()
        print(f"{'':28}{'messages a second':>27}{'us a message':>20}{'MiB':>20}")
        print(f"{'':28}{'ours':>10}{'official':>10}{'ratio':>7}" + f"{'ours':>10}{'official':>10}" * 2)
        for load, name in LOADS.items():
            found: dict[str, list[dict[str, float]]] = {"ours": [], "official": []}
            for turn in range(options.turns):
                for side, python, address in (
                    ("ours", sys.executable, namesrv),
                    ("official", options.python, endpoint),
                ):
                    group = f"python-clients-{side}-{turn}"
                    asyncio.run(create_group(namesrv, group))
                    found[side].append(run(python, folder, side, load, address, options.seconds, group))
            rates, costs, memory = (
                [statistics.median(map(figure, turns)) for turns in found.values()]
                for figure in (
                    lambda one: one["count"] / one["seconds"],
                    lambda one: one["processor"] / max(one["count"], 1) * 1e6,
                    lambda one: one["mib"],
                )
            )
            ratio = rates[0] / max(rates[1], 1)
            cells = f"{rates[0]:>10.0f}{rates[1]:>10.0f}{ratio:>7.1f}"
            print(f"{name:28}{cells}" + "".join(f"{figure:>10.1f}" for figure in costs + memory), flush=True)


if __name__ == "__main__":
    main()
