"""How long does a started server take to answer, and how much memory does it use when idle?

    python -m bench.start [--runs 10]

The time runs from the start of the process to the first reply to GET_ROUTEINFO_BY_TOPIC (105) for a topic the broker
registered. Memory is the resident set a second later, without mapped files of other processes (VmRSS).
"""

import argparse
import socket
import statistics
import tempfile
import time
from pathlib import Path

from pocketmq.protocol.message.topics import SELF_TEST_TOPIC
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.protocol.wire.schema import to_fields

from .server import served


def first_reply(folder: str) -> tuple[float, float]:
    """Milliseconds to the first reply, and MiB resident when idle, of one server."""
    began = time.perf_counter()
    with served(folder) as server:
        host, _, port = server.namesrv.partition(":")
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            request = GetRouteInfoByTopic(topic=SELF_TEST_TOPIC)
            connection.sendall(encode_frame(Command(request.code, 1, fields=to_fields(request))))
            cutter, replies = FrameCutter(), []
            while not replies:
                replies = cutter.feed(connection.recv(65536))
        elapsed_ms = (time.perf_counter() - began) * 1000
        if replies[0].code != 0:
            raise RuntimeError(f"the route was answered {replies[0].code}: {replies[0].remark}")
        time.sleep(1)
        status = Path(f"/proc/{server.pid}/status").read_text()
        resident_kib = int(status.partition("VmRSS:")[2].split()[0])
        return elapsed_ms, resident_kib / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    results = []
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as folder:
            results.append(first_reply(folder))
    times, memory = zip(*results, strict=True)
    print(f"start to first reply: median {statistics.median(times):.0f} ms, worst {max(times):.0f} ms")
    print(f"idle memory: median {statistics.median(memory):.0f} MiB, worst {max(memory):.0f} MiB")


if __name__ == "__main__":
    main()
