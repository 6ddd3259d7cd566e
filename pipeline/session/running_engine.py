"""Which Spark engine `pocketmq pipeline up` keeps running: a file with its address, token and process. No Spark.

The file is `$XDG_RUNTIME_DIR/pocketmq-engine.json`, else one in the cache folder, readable by its user only. Jobs
look there unless they name a master. A file of a process that has ended, or of an address that nothing answers, counts
as no file: a client of Spark Connect would try for minutes.
"""

import json
import os
import socket
from pathlib import Path

from .own_folder import own_folder, write_own

_MODE = 0o600
_CONNECT_SECONDS = 1.0
_MAX_PORT = 65_535


def engine_file() -> Path:
    """The file of this user."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / "pocketmq-engine.json"
    return own_folder() / "engine.json"


def announce(address: str) -> None:
    """Say that this process keeps an engine running."""
    write_own(engine_file(), json.dumps({"address": address, "pid": os.getpid()}), _MODE)


def withdraw() -> None:
    """Remove the file, if it is that of this process."""
    path = engine_file()
    if _read(path).get("pid") == os.getpid():
        path.unlink(missing_ok=True)


def running_engine() -> str | None:
    """The address of the engine, `sc://localhost:15002/;token=...`; None if none is running."""
    found = _read(engine_file())
    pid, address = found.get("pid"), found.get("address")
    if not isinstance(pid, int) or not isinstance(address, str):
        return None
    try:
        os.kill(pid, 0)
    except OSError:
        return None
    return address if _answers(address) else None


def _answers(address: str) -> bool:
    """Whether something listens there: the process may have lost its JVM, or its number may be another's by now."""
    host, _, port = address.removeprefix("sc://").partition("/")[0].rpartition(":")
    try:
        number = int(port)
        if number > _MAX_PORT:  # the system's resolver would take it modulo 65,536
            return False
        socket.create_connection((host, number), _CONNECT_SECONDS).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def _read(path: Path) -> dict[str, object]:
    """The file's content; empty if it does not exist, belongs to someone else, or cannot be read."""
    try:
        if path.stat().st_uid != os.getuid():
            return {}
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
