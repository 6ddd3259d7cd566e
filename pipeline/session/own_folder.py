"""The folder for what this package keeps on a machine: `$XDG_CACHE_HOME/pocketmq` (`~/.cache/pocketmq`). No Spark.

Not in the temporary folder: what has a name there that others can guess, others can make first.
"""

import os
import tempfile
from pathlib import Path


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
