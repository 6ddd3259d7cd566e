"""The folder of a temporary store: in memory where the machine has room for it.

Who asked for the folder removes it; if this process is killed, `after_death.py` does.
"""

import os
import tempfile
from pathlib import Path
from typing import Final

from pocketmq.broker.errors import StartError

from .after_death import remove_after_death

IN_MEMORY: Final = Path("/dev/shm")
IN_MEMORY_BYTES: Final = 512 << 20
"""A temporary store is kept in memory only if that much space is free. Containers often have 64 MB: too little."""


def temporary_folder() -> Path:
    """Make an empty folder of our own. `StartError` if that is not possible."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="pocketmq-", dir=_memory_folder()))
    except OSError as error:
        raise StartError(f"cannot make a temporary store: {error}") from error
    remove_after_death(folder)
    return folder


def _memory_folder() -> Path | None:
    """The folder that Linux keeps in memory, if it has room: deleting a test's queues there does not wait for a busy
    disk. None for the usual place, also if the environment names one."""
    if any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")):
        return None
    try:
        room = os.statvfs(IN_MEMORY)
    except (OSError, AttributeError):  # no such folder, or Windows
        return None
    has_room = room.f_bavail * room.f_frsize >= IN_MEMORY_BYTES
    return IN_MEMORY if has_room and os.access(IN_MEMORY, os.W_OK) else None
