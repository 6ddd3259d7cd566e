"""What does the journal cost a send? `python -m bench.journal [--messages N]`

CPU time of the whole process for a message sent to a broker without a socket, with and without a journal, in turns; the
journal's own thread counts too. CPU time says more than messages a second where others use the machine, and of some
rounds the shortest, for what others do to the caches only adds. A socket's own cost, the same with and without, is not
in it: of a send over TCP the journal is a smaller share than is said here.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.config_loading import Setting, load_broker
from pocketmq.broker.node import Node
from pocketmq.protocol.command import Command
from pocketmq.protocol.frame import encode_frame

ROUNDS: Final = 9
PER_READ: Final = 16
FIELDS: Final = {
    "a": "producers", "b": "Bench", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1700000000000", "h": "0",
    "i": "UNIQ_KEY\x01C0000202796B7ED92C9068B175B20002\x02WAIT\x01true\x02", "j": "0", "k": "false", "m": "false",
}  # fmt: skip


class Nowhere(asyncio.Transport):
    """Takes what is written."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""

    def write(self, data: Any) -> None:
        """Gone."""

    def writelines(self, list_of_data: Any) -> None:
        """Gone."""

    def is_closing(self) -> bool:
        return False


def config(folder: Path) -> BrokerConfig:
    given = {"storePathRootDir": str(folder), "listenPort": "0", "brokerIP1": "127.0.0.1"}
    return load_broker(None, [], [Setting(key, value, key) for key, value in given.items()])


async def microseconds(folder: Path, messages: int, journal: Path | None) -> float:
    """CPU time for a message."""
    node = Node(config(folder), None, journal_folder=journal)
    await node.start()
    try:
        connection = node._new_connection(node.broker.server)
        connection.connection_made(Nowhere())
        frames = [
            b"".join(
                encode_frame(Command(310, first + n, fields=FIELDS, body=b"x" * 128)) for n in range(PER_READ)
            )
            for first in range(0, messages, PER_READ)
        ]
        connection.data_received(frames[0])
        begun = time.process_time()
        for number, data in enumerate(frames):
            connection.data_received(data)
            if number % 64 == 0:
                await asyncio.sleep(0)
        taken = time.process_time() - begun
        connection.connection_lost(None)
        return taken / len(frames) / PER_READ * 1e6
    finally:
        await node.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description="What does the journal cost a send?")
    parser.add_argument("--messages", type=int, default=20_000)
    messages = parser.parse_args().messages
    found: dict[str, list[float]] = {"without": [], "with": []}
    for number in range(ROUNDS):
        for name, times in found.items():
            with tempfile.TemporaryDirectory(prefix="pocketmq-bench-") as folder:
                journal = Path(folder) / "journal" if name == "with" else None
                times.append(asyncio.run(microseconds(Path(folder) / f"store{number}", messages, journal)))
    without, with_it = (min(times) for times in found.values())
    print(f"without a journal {without:.1f} us, with it {with_it:.1f} us: {with_it / without - 1:+.1%}")


if __name__ == "__main__":
    main()
