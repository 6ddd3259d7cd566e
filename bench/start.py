"""How long does a started server take to answer, and how much memory does it use when idle?

    python -m bench.start [--runs 10] [--grpc]

The time runs from the start of the process to the first reply to GET_ROUTEINFO_BY_TOPIC (105) for a topic the broker
registered. Memory is the resident set a second later, without mapped files of other processes (VmRSS). With `--grpc`,
servers without and with a gRPC port are started in turns, and the difference of their lower quartiles is printed:
until the line that says the port is open, in processor time and by the wall, and in memory.
"""

import socket
import statistics
import tempfile
import time
from pathlib import Path

from pocketmq.protocol.message.topics import SELF_TEST_TOPIC
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic
from pocketmq.protocol.wire.schema import to_fields

from .frame import ask, memory_bytes, parsed, print_load_average, served


def first_reply(folder: str) -> tuple[float, float]:
    """Milliseconds to the first reply, and MiB resident when idle, of one server."""
    began = time.perf_counter()
    with served(folder) as server:
        host, _, port = server.namesrv.partition(":")
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            request = GetRouteInfoByTopic(topic=SELF_TEST_TOPIC)
            reply = ask(connection, request.code, to_fields(request))
        elapsed_ms = (time.perf_counter() - began) * 1000
        if reply.code != 0:
            raise RuntimeError(f"the route was answered {reply.code}: {reply.remark}")
        time.sleep(1)
        return elapsed_ms, resident_mib(server.pid)


def resident_mib(process_id: int) -> float:
    return memory_bytes(process_id, "VmRSS") / (1 << 20)


def thread_ms(process_id: int) -> float:
    """Processor time of all threads of a process; finer than `cpu_seconds`."""
    tasks = Path(f"/proc/{process_id}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6


def until_ports(folder: str, *words: str) -> tuple[float, float, float]:
    """Milliseconds by the wall and of processor time until all ports are open, and MiB resident when idle."""
    began = time.perf_counter()
    with served(folder, *words) as server:
        if words:
            server.output.readline()
        elapsed_ms = (time.perf_counter() - began) * 1000
        used_ms = thread_ms(server.pid)
        time.sleep(0.5)
        return elapsed_ms, used_ms, resident_mib(server.pid)


def compare_with_grpc(runs: int) -> None:
    figures: dict[str, list[tuple[float, float, float]]] = {"without": [], "with": []}
    for _ in range(runs):
        for name, words in (("without", ()), ("with", ("--grpc-port", "0"))):
            with tempfile.TemporaryDirectory() as folder:
                figures[name].append(until_ports(folder, *words))
    quartiles = {
        name: [sorted(values)[len(values) // 4] for values in zip(*rows, strict=True)]
        for name, rows in figures.items()
    }
    units = ("ms by the wall", "ms of processor time", "MiB idle")
    for unit, before, behind in zip(units, quartiles["without"], quartiles["with"], strict=True):
        print(f"{unit}: {before:.1f} without, {behind:.1f} with a gRPC port, {behind - before:+.1f}")


def main() -> None:
    options = parsed(__doc__, runs=10, grpc=False)
    if options.grpc:
        print_load_average()
        compare_with_grpc(options.runs)
        return
    results = []
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as folder:
            results.append(first_reply(folder))
    times, memory = zip(*results, strict=True)
    print(f"start to first reply: median {statistics.median(times):.0f} ms, worst {max(times):.0f} ms")
    print(f"idle memory: median {statistics.median(memory):.0f} MiB, worst {max(memory):.0f} MiB")


if __name__ == "__main__":
    main()
