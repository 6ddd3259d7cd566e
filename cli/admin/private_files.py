"""`pocketmq admin`: files that only their owner can read, those of mqadmin below /tmp/rocketmq among them.

Every user of the machine may have laid a link below /tmp before, so folders there must be ours and a file must be no
link.
"""

import os
import stat
from pathlib import Path
from typing import Final

SHARED: Final = Path("/tmp/rocketmq")


def write_file(path: Path, data: bytes) -> None:
    """Write a file and make its folders. Raises OSError, also for a folder of another user."""
    for folder in reversed(path.parents):
        if folder.is_relative_to(SHARED):
            _make_own(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)


def _make_own(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise PermissionError(f"{folder} is a link, or belongs to another user") from None
