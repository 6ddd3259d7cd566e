"""Sessions that start sooner: what a JVM has loaded once is kept in a file, and the next one maps it.

    pocketmq pipeline prepare        once for each Java and environment; half a minute, and some 140 MB on disk

Spark is 10,000 classes, and loading them is a third of the time from nothing to the first rows. `session.py` names the
archive to the JVM where there is one. It can only help: a JVM whose program files are not those the archive was made
of starts as if there were none. The folder is `$XDG_CACHE_HOME/pocketmq` (`~/.cache/pocketmq`).
"""

import hashlib
import os
import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_NO_COMPLAINTS: Final = "-Xlog:disable -Xlog:all=error:stderr"
"""Where the archive does not fit, a JVM says so on the standard output, which is the job's."""


def archive_path(java_home: Path) -> Path:
    """Where the archive for this PySpark on that Java stands, or would."""
    cache = os.environ.get("XDG_CACHE_HOME")
    folder = Path(cache) if cache and Path(cache).is_absolute() else Path.home() / ".cache"
    spark = f"{version('pyspark')}-{_installation()}"
    return folder / "pocketmq" / f"spark-{spark}-java-{_java_release(java_home)}.jsa"


def _installation() -> str:
    """A short name for where PySpark is installed: an archive is good for files of that place alone."""
    spec = find_spec("pyspark")
    return hashlib.blake2b(str(spec and spec.origin).encode(), digest_size=4).hexdigest()


def _java_release(java_home: Path) -> str:
    """What the Java calls itself, as a part of a file name."""
    try:
        told = (java_home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown"
    matched = re.search(r'^JAVA_RUNTIME_VERSION="(.*)"|^JAVA_VERSION="(.*)"', told, re.MULTILINE)
    return re.sub(r"[^\w.+-]", "_", matched[1] or matched[2]) if matched else "unknown"


def archive_options(java_home: Path) -> str:
    """Options for a JVM of that Java: none where there is no archive."""
    path = archive_path(java_home)
    return f"-XX:SharedArchiveFile={path} {_NO_COMPLAINTS}" if path.is_file() and " " not in str(path) else ""
