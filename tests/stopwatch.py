"""Measures durations on a machine that does other work too.

What Linux reports as pressure is subtracted: the time in which some task of the machine waited for a processor, a disk
or memory. So a bound on a `Stopwatch` holds on a busy machine too; without such a report, ask for `load` as well.
"""

import os
import time
from pathlib import Path

PRESSURES = [Path("/proc/pressure", kind) for kind in ("cpu", "io", "memory")]


class Stopwatch:
    """Runs from its creation on."""

    def __init__(self) -> None:
        self._began, self._waited = time.monotonic(), seconds_of_waiting()

    @property
    def seconds(self) -> float:
        """Since the start, without the time in which tasks of this machine had to wait."""
        return time.monotonic() - self._began - (seconds_of_waiting() - self._waited)


def seconds_of_waiting() -> float:
    """For how long in total some task of this machine could not run, since the machine started."""
    total = 0
    for path in PRESSURES:
        try:
            total += int(path.read_text("ascii").splitlines()[0].rpartition("total=")[2])
        except (OSError, ValueError, IndexError):
            continue
    return total / 1e6


def load() -> float:
    """How many tasks share a processor if the machine does not report pressure; else 1."""
    if PRESSURES[0].exists():
        return 1.0
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
