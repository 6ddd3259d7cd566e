"""`pocketmq serve` with a probe on its event loop: started by `judge.py` as a program of its own.

    python probed_server.py DESCRIPTOR serve ...

The probe is a timer that is due every millisecond. Between two of its beats the loop's thread uses processor time: at
most one long turn, and the short turns within that millisecond. `DESCRIPTOR` is a socket; a thread answers three words
on it, so an answer comes while the loop stands still, too:

    collect  collect garbage and give free memory back: in a thread of its own, so no turn is longer by it
    reset    forget what was measured, and the process's highest memory
    report   {"turn_ms": the longest turn, the one under way included, "peak": highest memory in bytes, "now": memory}
"""

import asyncio
import ctypes
import gc
import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pocketmq.broker import process
from pocketmq.cli.main import main

BEAT_SECONDS = 0.001


class Probe:
    """Processor time of the loop's thread, from beat to beat."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._clock = 0
        self._last = 0.0
        self._longest = 0.0
        loop.call_soon(self._start)

    def _start(self) -> None:
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        self._last = time.clock_gettime(self._clock)
        self._beat()

    def _beat(self) -> None:
        now = time.clock_gettime(self._clock)
        self._longest = max(self._longest, now - self._last)
        self._last = now
        self._loop.call_later(BEAT_SECONDS, self._beat)

    def reset(self) -> None:
        """Forget the turns so far. The part of the present one that has passed stays out, too."""
        self._last = time.clock_gettime(self._clock)
        self._longest = 0.0

    @property
    def longest_seconds(self) -> float:
        return max(self._longest, time.clock_gettime(self._clock) - self._last)


def memory(name: str) -> int:
    """Bytes of this process: `VmRSS` now, `VmHWM` the most since the last reset."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def answer(control: socket.socket, probe: Callable[[], Probe]) -> None:
    """Answer until the other side closes the socket."""
    with control, control.makefile("rw", encoding="utf-8") as stream:
        for line in stream:
            reply: dict[str, float] = {}
            if line == "collect\n":
                gc.collect()
                ctypes.CDLL(None).malloc_trim(0)
            elif line == "reset\n":
                Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
                probe().reset()
            else:
                turn_ms = probe().longest_seconds * 1000
                reply = {"turn_ms": turn_ms, "peak": memory("VmHWM"), "now": memory("VmRSS")}
            stream.write(json.dumps(reply) + "\n")
            stream.flush()


def run() -> None:
    """Serve with the words after the descriptor."""
    make_loop = process.loop_factory() or asyncio.new_event_loop
    probes: list[Probe] = []

    def probed_loop() -> asyncio.AbstractEventLoop:
        loop = make_loop()
        probes.append(Probe(loop))
        return loop

    process.loop_factory = lambda: probed_loop
    control = socket.socket(fileno=int(sys.argv[1]))
    threading.Thread(target=answer, args=(control, lambda: probes[-1]), daemon=True).start()
    main(sys.argv[2:])


if __name__ == "__main__":
    run()
