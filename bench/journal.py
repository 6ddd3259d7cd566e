"""What does the journal cost a send? `python -m bench.journal [--messages N]`

CPU time per message at a broker without a socket, with and without a journal, in alternating slices: the median slice
of the loop's thread, and everything of the journal's own thread. CPU time is more reliable than messages a second on a
shared machine. The socket's cost is not included, because it is the same with and without a journal: of a send over
TCP the journal is a smaller share than these figures show.
"""

import asyncio
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.loading import Setting, load_broker
from pocketmq.broker.network.connection import Connection
from pocketmq.broker.node import Node
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import encode_frame

from .frame import parsed

SLICE: Final = 256
PER_READ: Final = 16
FIELDS: Final = {
    "a": "producers", "b": "Bench", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1700000000000", "h": "0",
    "i": "UNIQ_KEY\x01C0000202796B7ED92C9068B175B20002\x02WAIT\x01true\x02", "j": "0", "k": "false", "m": "false",
}  # fmt: skip


class Nowhere(asyncio.Transport):
    """A transport that drops what is written."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing: it has no buffer."""

    def write(self, data: Any) -> None:
        """Gone."""

    def writelines(self, list_of_data: Any) -> None:
        """Gone."""

    def is_closing(self) -> bool:
        return False


def config(folder: Path) -> BrokerConfig:
    given = {"storePathRootDir": str(folder), "listenPort": "0", "brokerIP1": "127.0.0.1"}
    return load_broker(None, [], [Setting(key, value, key) for key, value in given.items()])


class Sent:
    """One broker, and the CPU time of the loop's thread for each slice of messages, in ns."""

    def __init__(self, folder: Path, journal: Path | None) -> None:
        self.node = Node(config(folder), None, journal_folder=journal)
        self.taken: list[int] = []

    async def start(self) -> None:
        await self.node.start()
        self._connection = Connection(self.node.server)
        self._connection.connection_made(Nowhere())

    async def stop(self) -> None:
        self._connection.connection_lost(None)
        await self.node.stop()

    def send(self, reads: list[bytes]) -> None:
        begun = time.thread_time_ns()
        for data in reads:
            self._connection.data_received(data)
        self.taken.append(time.thread_time_ns() - begun)

    def microseconds(self) -> float:
        """CPU time of the loop's thread per message, in the median slice."""
        return statistics.median(self.taken) / SLICE / 1000


async def compare(folder: Path, messages: int) -> tuple[float, float]:
    """Microseconds per message without a journal, and with it."""
    sides = Sent(folder / "without", None), Sent(folder / "with", folder / "journal")
    for one in sides:
        await one.start()
    (writer,) = [one for one in threading.enumerate() if one.name == "pocketmq-journal"]
    writer_clock = time.pthread_getcpuclockid(writer.ident or 0)
    begun = time.clock_gettime_ns(writer_clock)
    for first in range(0, messages, SLICE):
        reads = [
            b"".join(
                encode_frame(Command(310, opaque + n, fields=FIELDS, body=b"x" * 128))
                for n in range(PER_READ)
            )
            for opaque in range(first, first + SLICE, PER_READ)
        ]
        for one in sides:
            one.send(reads)
            await asyncio.sleep(0)
    writer_ns = time.clock_gettime_ns(writer_clock) - begun
    for one in sides:
        await one.stop()
    without, with_it = (one.microseconds() for one in sides)
    return without, with_it + writer_ns / messages / 1000


def main() -> None:
    messages = parsed(__doc__, messages=100_000).messages
    with tempfile.TemporaryDirectory(prefix="pocketmq-bench-") as folder:
        without, with_it = asyncio.run(compare(Path(folder), messages))
    print(f"without a journal {without:.1f} us, with it {with_it:.1f} us: {with_it / without - 1:+.1%}")


if __name__ == "__main__":
    main()
