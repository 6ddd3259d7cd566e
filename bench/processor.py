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


def tree_seconds(name: str) -> float:
    """User and system time of the programs of this name that this process started, and of all below them."""
    return sum(processor_seconds(name))


def processor_seconds(name: str) -> tuple[float, float]:
    """User and system time of (the programs of this name that this process started, all processes below them)."""
    processes = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:  # it has ended
            continue
        head, _, tail = text.rpartition(")")
        processes[int(path.parent.name)] = (head.partition("(")[2], tail.split())
    roots = {
        process
        for process, (program, fields) in processes.items()
        if program == name and int(fields[1]) == os.getpid()
    }
    wanted, counted = set(roots), set[int]()
    while wanted - counted:
        counted |= wanted
        wanted |= {process for process, (_, fields) in processes.items() if int(fields[1]) in counted}
    own = below = 0
    for process in counted:
        user, system, *of_ended_children = map(int, processes[process][1][11:15])
        own += user + system if process in roots else 0
        below += sum(of_ended_children) + (0 if process in roots else user + system)
    return own / _TICKS_PER_SECOND, below / _TICKS_PER_SECOND
