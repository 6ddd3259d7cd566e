"""Which log configuration a local session's JVM gets: `log4j2.properties` beside this file, unless the user has one.

With Spark's own, each start prints four lines that say nothing, and each stream that is stopped the stack of its
interrupt. Under a local master an error in a task reaches the program as an exception; the log would only repeat it.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_QUIET: Final = Path(__file__).with_name("log4j2.properties")
_OF_JAVA: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS")
"""Variables that may hold options of the JVM."""


def log_options(environ: Mapping[str, str]) -> str:
    """The JVM option that names the quiet configuration; empty if the user configured Spark's log."""
    is_usable = _QUIET.is_file() and " " not in str(_QUIET)  # a JVM option cannot hold a blank
    if not is_usable or is_log_configured(environ):
        return ""
    return f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"


def is_log_configured(environ: Mapping[str, str]) -> bool:
    """Whether the environment, or a file in Spark's folder of settings, configures Spark's log."""
    if environ.get("LOG4J_CONFIGURATION_FILE"):
        return True
    if any("log4j" in environ.get(name, "") for name in _OF_JAVA):
        return True
    folder = _settings_folder(environ)
    if folder is None:
        return False
    if any(one.suffix != ".template" for one in folder.glob("log4j2*")):
        return True
    try:
        return "log4j" in (folder / "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _settings_folder(environ: Mapping[str, str]) -> Path | None:
    """Where Spark looks for its files: also the folder of an installed PySpark has one, if somebody made it."""
    if environ.get("SPARK_CONF_DIR"):
        return Path(environ["SPARK_CONF_DIR"])
    home = environ.get("SPARK_HOME")
    if home is None:
        spec = find_spec("pyspark")
        home = str(Path(spec.origin).parent) if spec and spec.origin else None
    return Path(home) / "conf" if home else None
