"""gRPC calls beside the official proxy: `python -m bench.grpc_calls [SECONDS]`.

The Java client sends, then receives and acknowledges, against our port and against the official 5.5.0 proxy in LOCAL
mode (broker and proxy in one process), in turns. Printed are calls a second, and calls for each second of processor
time that the server used: the second is what machines pay for, and does not depend on what else runs here.
"""

import sys
import tempfile
import time
from pathlib import Path

from conformance.official.local_proxy import LIBRARIES, LocalProxy, library
from conformance.servers.our_server import OurServer
from conformance.servers.processes import Running
from conformance.servers.raw_client import RawClient, topic_fields
from conformance.servers.server import Server

from .frame import cpu_seconds, print_load_average

ENDPOINT = "127.0.0.1:8081"
TOPIC = "GrpcBench"
WARM_SECONDS = 8
WINDOW = 64
ROUNDS = 2
SOURCE = Path(__file__).with_name("GrpcLoad.java")
SIDES = ("ours", "official proxy")
CREATE_TOPIC = 17


def new_server(side: str, home: Path) -> Server:
    """Not started."""
    if side == "ours":
        return OurServer(home, options=("--grpc-port", "8081", "--log-level", "error"))
    return LocalProxy(home)


def server_process(server: Server) -> int:
    """The process that serves gRPC."""
    if isinstance(server, LocalProxy):
        return server.brokers["broker"].process.pid
    assert isinstance(server, OurServer)
    assert server.process is not None
    return server.process.process.pid


def measure(server: Server, load: str, seconds: int) -> tuple[float, float]:
    """(calls a second, calls for a second of the server's processor time)."""
    words = [ENDPOINT, load, TOPIC, str(WARM_SECONDS), str(seconds), str(WINDOW)]
    home = f"-Duser.home={server.home}"
    command = ["java", "-Xmx512m", home, "-cp", library(LIBRARIES["5.2.0"]), str(SOURCE), *words]
    log = server.home / f"load-{load}-{time.monotonic_ns()}"
    with Running(server.namespace, command, log, name=f"GrpcLoad {load}", separate_errors=True) as running:
        running.wait_for("^begin$", 60 + WARM_SECONDS)
        process, before = server_process(server), time.monotonic()
        used = cpu_seconds(process)
        running.wait_for(r"^end \d+$", seconds + 30)
        used, wall = cpu_seconds(process) - used, time.monotonic() - before
        calls = int(running.output.rpartition("end ")[2])
    return calls / wall, calls / max(used, 0.01)


def prepare(server: Server) -> None:
    with RawClient(server) as client:
        fields = {**topic_fields(TOPIC, 8), "attributes": "+message.type=NORMAL"}
        reply = client.call(CREATE_TOPIC, b"", **fields)
        assert reply.code == 0, reply
        client.update_group("bench")


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print_load_average()
    print(f"{'load':<16} {'side':<16} {'calls/s':>9} {'per core-second':>16} {'us a call':>10}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            for side in SIDES if number % 2 == 0 else SIDES[::-1]:
                home = Path(folder) / f"{side.replace(' ', '-')}-{number}"
                with new_server(side, home) as server:
                    prepare(server)
                    for load, name in (("send", "send 1 KiB"), ("receive", "receive + ack")):
                        rate, each = measure(server, load, seconds)
                        row = f"{name:<16} {side:<16} {rate:>9.0f} {each:>16.0f} {1e6 / each:>10.0f}"
                        print(row, flush=True)


if __name__ == "__main__":
    main()
