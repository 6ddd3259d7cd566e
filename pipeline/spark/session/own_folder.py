"""The folder for what this package keeps on a machine: `$XDG_CACHE_HOME/pocketmq` (`~/.cache/pocketmq`). No Spark.

Not in the temporary folder: what has a name there that others can guess, others can make first.
"""

import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import PipelineError


def own_folder() -> Path:
    """The folder, which need not exist."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache and Path(cache).is_absolute() else Path.home() / ".cache") / "pocketmq"


def write_own(path: Path, text: str, mode: int) -> None:
    """Write a file of that folder. Whoever reads it meanwhile has the old one or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(name, mode)
    os.replace(name, path)


@contextmanager
def only_one(key: str, what: str) -> Iterator[str]:
    """Inside the `with`, no other process of this user on this machine is inside one with the same key. Gives a random
    text that every process of this key gets.

    `PipelineError` if one is. A process that is killed is no longer inside.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield secrets.token_hex(8)
        return
    folder = own_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
    with open(folder / f"{name}.lock", "a+", encoding="utf-8") as file:
        file.seek(0)
        process, _, text = file.read().partition(" ")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise PipelineError(f"{what} runs already, as process {process or '?'}") from error
        text = text or secrets.token_hex(8)
        file.truncate(0)
        file.write(f"{os.getpid()} {text}")
        file.flush()
        yield text
