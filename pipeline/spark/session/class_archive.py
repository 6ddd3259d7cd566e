"""Where the class archive lies that makes sessions start sooner, and the JVM options that name it.

    pocketmq pipeline prepare        once for each Java and environment; half a minute, and some 140 MB on disk

Spark loads 10,000 classes, a third of the time from nothing to the first rows. The archive holds them in a form that a
JVM maps into memory. It cannot do harm: a JVM whose program files differ from those the archive was made of starts
without it. The folder is `$XDG_CACHE_HOME/pocketmq` (`~/.cache/pocketmq`). `prepare.py` makes the archive.
"""

import hashlib
import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from .own_folder import own_folder

_QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"
"""A JVM reports an archive that does not fit on standard output, which belongs to the job."""


def archive_path(java_home: Path) -> Path:
    """The file for this PySpark on that Java. It need not exist."""
    spec = find_spec("pyspark")  # an archive fits the files of one place only
    place = hashlib.blake2b(str(spec and spec.origin).encode(), digest_size=4).hexdigest()
    return own_folder() / f"spark-{version('pyspark')}-{place}-java-{_java_release(java_home)}.jsa"


def _java_release(java_home: Path) -> str:
    """The version that this Java reports, made fit for a file name."""
    try:
        release = (java_home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "unknown"
    matched = re.search(r'^JAVA_RUNTIME_VERSION="(.*)"|^JAVA_VERSION="(.*)"', release, re.MULTILINE)
    return re.sub(r"[^\w.+-]", "_", matched[1] or matched[2]) if matched else "unknown"


def archive_options(java_home: Path) -> str:
    """The JVM options that use the archive; empty if there is none."""
    path = archive_path(java_home)
    return f"-XX:SharedArchiveFile={path} {_QUIET}" if path.is_file() and " " not in str(path) else ""
