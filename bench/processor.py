"""How busy the processors are, and how much time a process has used: printed beside rates, to interpret them."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def print_load_average() -> None:
    """The system's load averages over 1, 5 and 15 minutes."""
    print("load average", *(f"{value:.1f}" for value in os.getloadavg()), flush=True)


def cpu_seconds(process_id: int) -> float:
    """User and system time a process has used, its threads included."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND
