"""How fast does an empty slave catch up with a master's log?

    python -m bench.replication [--mebibytes 900] [--size 4096]

Both are PocketMQ processes on this machine; the log is written beforehand, directly into the master's store. Two times
are printed: until the slave has every byte, and until every message is visible in the slave's queues.
"""

import socket
import tempfile
import time
from pathlib import Path

from pocketmq.protocol.text import fastjson
from pocketmq.store import MessageStore, NewMessage, StoreConfig, WallClock

from .frame import ask, parsed, served

RUNTIME_INFO = 28
TOPIC = "SELF_TEST_TOPIC"


def write_log(folder: Path, mebibytes: int, size: int) -> int:
    """Fill one log file's worth of messages; returns where the log ends."""
    store = MessageStore(StoreConfig(store_path_root_dir=str(folder)), WallClock())
    store.open()
    body = bytes(size)
    while store.log_end < mebibytes << 20:
        store.append(NewMessage(TOPIC, 0, body, b""))
    end = store.log_end
    store.close()
    return end


def runtime_info(port: int) -> dict[str, str]:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        table: dict[str, str] = fastjson.loads(bytes(ask(connection, RUNTIME_INFO).body or b""))["table"]
        return table


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    options = parsed(__doc__, mebibytes=900, size=4096)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        end = write_log(root / "master", options.mebibytes, options.size)
        port = free_port()
        with served(root / "master") as master:
            ports = ("--port", str(port), "--no-namesrv", "--namesrv", master.namesrv)
            role = ("--set", "brokerRole=SLAVE", "--set", "brokerId=1")
            with served(root / "slave", *role, ports=ports):
                began, copied = time.monotonic(), 0.0
                while True:
                    info = runtime_info(port)
                    at_end = int(info["commitLogMaxOffset"]) >= end
                    copied = copied or (time.monotonic() - began if at_end else 0.0)
                    if at_end and int(info["dispatchBehindBytes"]) == 0:
                        break
                    time.sleep(0.02)
                visible = time.monotonic() - began
    print(
        f"{end / 2**20:.0f} MiB of {options.size}-byte messages: copied in {copied:.1f} s "
        f"({end / 2**20 / copied:.0f} MiB/s), visible after {visible:.1f} s ({end / 2**20 / visible:.0f} MiB/s)"
    )


if __name__ == "__main__":
    main()
