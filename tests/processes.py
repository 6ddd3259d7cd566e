"""Programs that a test starts: what one says first, and whether it still runs."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def python(*words: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """What came of Python with these words."""
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, **options)


def line_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def is_running(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # no /proc, or it has ended just now
        return not Path("/proc/self").exists()
