"""Where tests read the wall's clock or sleep, and how often: the only places. `test_tidy.py` refuses new ones.

Wait for a fact (`waiting.py`) in place of a sleep; show an order or a fact, or move virtual time, in place of a
duration. What stays is a lower limit of a promise, a delay inside a fake, or a clock that is itself tested.
Processor time (`time.process_time`, `time.thread_time`) is free. `spark/` and `conformance/` drive programs with
clocks of their own; `simulation/` has a loop whose time jumps.
"""

import ast
from pathlib import Path

HERE = Path(__file__).parent
CLOCKS = {"time.time", "time.monotonic", "time.perf_counter"}
SLEEPS = {"time.sleep", "asyncio.sleep"}
FREE = {"waiting.py", "stopwatch.py", "clock_readings.py", "client_network.py"}
FREE_FOLDERS = {"spark", "conformance", "simulation"}

KNOWN = {
    "any_server.py": 3,
    "broker/cluster/test_registration.py": 1,
    "testing/behave/test_behave.py": 5,
    "cli/messages/test_send_and_tail.py": 5,
    "cli/test_proxy.py": 2,
    "cli/test_serve.py": 1,
    "client/connections/test_connection.py": 1,
    "client/offsets/test_offset_reports.py": 1,
    "client/pulling/test_lite_pull_consumer.py": 1,
    "client/pulling/test_pull_consumer.py": 1,
    "client/push/test_members_come_and_go.py": 6,
    "client/push/test_ordered_consumer.py": 2,
    "client/push/test_pop.py": 1,
    "client/push/test_push_consumer.py": 1,
    "client/test_exchange.py": 2,
    "client/test_servers_die.py": 4,
    "client_waits.py": 1,
    "console/browser.py": 3,
    "console/test_connections.py": 1,
    "golden/name_server_dialogue.py": 3,
    "grpc_endpoint/consuming/test_receive.py": 2,
    "grpc_endpoint/http2/test_fuzz.py": 1,
    "grpc_endpoint/http2/test_port_limits.py": 2,
    "grpc_endpoint/test_keys.py": 4,
    "grpc_endpoint/test_watched.py": 2,
    "hostile/fuzz.py": 2,
    "hostile/fuzz_peers.py": 2,
    "hostile/judge.py": 2,
    "pipeline/brokers/test_batch_sender.py": 2,
    "pipeline/brokers/test_silent_brokers.py": 5,
    "pipeline/brokers/test_waiting.py": 2,
    "store/durability/test_kill.py": 1,
    "test_offsets_after_kill.py": 5,
    "testing/cluster/test_cluster_clients.py": 4,
    "testing/cluster/test_cluster_grpc.py": 2,
    "testing/faults/test_effects.py": 1,
    "testing/faults/test_network.py": 6,
    "testing/ledger/test_groups.py": 1,
    "testing/requests/test_requests.py": 1,
    "testing/server/test_clock.py": 4,
    "testing/server/test_virtual_time.py": 3,
    "testing/time/test_virtual_timers.py": 2,
    "testing/views/test_views.py": 1,
    "testing/views/test_waits.py": 1,
}


def readings(path: Path) -> int:
    """Calls of a clock or a sleep in one file; a sleep of 0 lets the loop turn and is none."""
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    names = [(ast.unparse(call.func), call) for call in calls]
    return sum(
        name.removesuffix("_ns") in CLOCKS
        or name.endswith((".loop.time", "get_running_loop().time"))
        or name == "loop.time"
        or (name in SLEEPS and ast.unparse(call.args[0]) != "0")
        for name, call in names
    )


def found() -> dict[str, int]:
    """By file, without those that have none."""
    files = [path.relative_to(HERE) for path in HERE.rglob("*.py") if path.name not in FREE]
    counts = {str(path): readings(HERE / path) for path in files if path.parts[0] not in FREE_FOLDERS}
    return {name: count for name, count in counts.items() if count}
