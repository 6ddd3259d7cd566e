"""What is done if this process is killed: temporary stores are removed, programs that it runs are ended.

SIGKILL, and in pytest SIGTERM, leave no time for that. So a small shell, in a session of its own and no child of ours,
reads a pipe whose only writer is this process: at the end of the pipe it does what it has read by then. It starts with
the first use. Where there is no such shell (Windows), nothing is done.

    /dev/shm/pocketmq-abc       remove this folder, if it still exists
    end: -4711 -4712            end these processes or, with a minus, groups; the last such line counts
"""

import contextlib
import os
import threading
from pathlib import Path
from typing import Final

_SCRIPT: Final = """
cd /
exec 3<&0 </dev/null
(
    ids=
    while IFS= read -r line; do
        case $line in
            end:*) ids=${line#end:} ;;
            *) set -- "$@" "$line" ;;
        esac
    done <&3
    if [ -n "$ids" ]; then
        kill -s TERM -- $ids
        sleep 2
        kill -s KILL -- $ids
    fi
    rm -rf -- "$@"
) &
"""
"""SIGKILL follows SIGTERM after two seconds. The part in brackets outlives its parent, so nobody has to wait for it."""

_lock = threading.Lock()
_targets: Final[set[int]] = set()
_pipe: int | None = None
_is_missing = False


def remove_after_death(folder: Path) -> None:
    """Remove this folder once this process has ended, however it ends."""
    with _lock:
        if "\n" not in str(folder):
            _write(f"{folder.absolute()}\n")


def end_after_death(target: int) -> None:
    """End this process or, with a minus, this process group if this process is killed."""
    with _lock:
        _targets.add(target)
        _write_targets()


def let_live(target: int) -> None:
    """It has ended, or is ended in another way."""
    with _lock:
        if target in _targets:
            _targets.remove(target)
            _write_targets()


def _write_targets() -> None:
    _write("".join(["end:", *(f" {target}" for target in sorted(_targets)), "\n"]))


def _write(line: str) -> None:
    pipe = _opened()
    if pipe is not None:
        with contextlib.suppress(OSError):  # somebody has ended the shell
            os.write(pipe, line.encode())


def _opened() -> int | None:
    global _pipe, _is_missing
    if _pipe is None and not _is_missing:
        try:
            _pipe = _started()
        except (OSError, AttributeError, NotImplementedError):
            _is_missing = True
    return _pipe


def _started() -> int:
    """Start the shell; returns the end of the pipe that is ours."""
    reader, writer = os.pipe()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        child = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", _SCRIPT, "pocketmq-after-death"],
            {"PATH": os.defpath},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reader, 0),
                *((os.POSIX_SPAWN_DUP2, null, n) for n in (1, 2)),
            ],
            setsid=True,
        )
    except BaseException:
        os.close(writer)
        raise
    finally:
        os.close(reader)
        os.close(null)
    os.waitpid(child, 0)
    os.set_blocking(writer, False)
    return writer


def _forget_parents() -> None:
    """A forked child has nothing to clean up, and must not keep the pipe of its parent open."""
    global _pipe, _lock
    pipe, _pipe = _pipe, None
    _lock = threading.Lock()
    _targets.clear()
    if pipe is not None:
        os.close(pipe)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents)
