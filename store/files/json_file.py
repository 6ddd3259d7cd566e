"""JsonFile: one configuration file with its `.bak`, safe against a kill at any moment.

Saving X: write X.tmp and force it to disk, link the former X to X.bak, rename X.tmp to X, force the folder. So X
exists and is whole at every moment after the first save, for other processes too (on a file system without links, X
is absent between two renames). The official 5.5.0 renames first and then writes X in place; its half-written files
are read here as well.

    X                       X.bak            loaded
    good                    any              X
    absent, empty or torn   good             X.bak
    absent or empty         absent or empty  nothing: the table starts with its built-in content
    torn                    absent or empty  refused
    absent, empty or torn   torn             refused

The tables decide what is in the file.
"""

import contextlib
import logging
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeVar

from pocketmq.protocol.errors import BodyError

from .. import layout
from ..errors import StoreDamagedError, system_error
from . import disk

MAX_FILE_BYTES: Final = 1 << 30

_Content = TypeVar("_Content")
_log = logging.getLogger(__name__)


class JsonFile:
    """Loads and saves the file X. Mirrors the file side of the official ConfigManager. Owner: one thread at a time.

    X keeps its permissions when it is saved; with `mode` it has these.
    """

    def __init__(self, path: Path, *, mode: int | None = None) -> None:
        self.path = path
        self._mode = mode
        self.before_replace: Callable[[], None] | None = None
        """Called by `save` when the new text is on disk, before it takes the place of the former one."""
        self.backup_path = path.with_name(path.name + layout.BACKUP_ENDING)

    def load(self, decode: Callable[[bytes], _Content]) -> _Content | None:
        """Content of X, or of X.bak if X cannot be used; None if neither exists.

        `decode` raises BodyError on text it cannot read. Raises StoreDamagedError if the text of the table above that
        should be loaded is damaged, StoreError if the system refuses to read a file.
        """
        fault: BodyError | None = None
        try:
            content = _read(self.path)
            if content:
                return decode(content)
        except BodyError as error:
            fault = error
        backup = _read(self.backup_path)
        if not backup:
            if fault is None:
                return None
            raise StoreDamagedError(f"{self.path} is damaged and has no backup: {fault}") from fault
        try:
            result = decode(backup)
        except BodyError as error:
            state = "is damaged" if fault else "is missing or empty"
            raise StoreDamagedError(f"{self.path} {state} and its backup is damaged: {error}") from error
        if fault:
            # The next save makes X the backup; a torn X must not replace the good one.
            _log.warning("%s is damaged (%s), using %s", self.path, fault, self.backup_path.name)
            os.replace(self.path, self.path.with_name(self.path.name + ".damaged"))
        return result

    def save(self, content: bytes | Iterable[bytes]) -> None:
        """Replace X by this text, or by these pieces; returns when it is on disk. May run in any thread, one call at a
        time.

        Raises OSError or DiskFailedError, or what `before_replace` raises; X or X.bak then still holds the former
        content.
        """
        disk.make_directory(self.path.parent)
        temporary = self.path.with_name(self.path.name + ".tmp")
        temporary.unlink(missing_ok=True)
        with open(temporary, "wb", opener=self._create) as file:
            file.writelines((content,) if isinstance(content, bytes) else content)
            file.flush()
            disk.force_file(file.fileno(), temporary)
        if self.before_replace is not None:
            self.before_replace()
        try:
            # An empty X (a torn first write of another program) must not push out a good backup.
            if self.path.stat().st_size:
                self._keep_as_backup()
        except FileNotFoundError:
            pass
        os.replace(temporary, self.path)
        disk.force_directory(self.path.parent)

    def _create(self, path: str, flags: int) -> int:
        """Open a new file that nobody but its readers to be can read, from its first byte on."""
        mode = self._mode
        for former in (self.path, self.backup_path):
            if mode is None:
                with contextlib.suppress(FileNotFoundError):
                    mode = stat.S_IMODE(former.stat().st_mode)
        if mode is None:
            return os.open(path, flags | os.O_EXCL, 0o666)
        descriptor = os.open(path, flags | os.O_EXCL, mode)
        os.fchmod(descriptor, mode)  # whatever the umask is
        return descriptor

    def _keep_as_backup(self) -> None:
        second_name = self.path.with_name(self.path.name + ".bak.tmp")
        try:
            second_name.unlink(missing_ok=True)
            os.link(self.path, second_name)
        except OSError:
            os.replace(self.path, self.backup_path)  # a file system without links
        else:
            os.replace(second_name, self.backup_path)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise system_error("read", path, error) from error
