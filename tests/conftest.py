"""What holds for every test: limits of a run (`run_limits.py`), how hypothesis searches, and kept bytecode.

hypothesis tries the same examples each time, in the nightly run (POCKETMQ_NIGHTLY) new ones; a failure prints how to
reproduce it. It counts neither time nor slowness of an example: a slow machine does not fail a test.

Bytecode is kept even if the environment forbids Python to write it. About a hundred tests start the program, and pytest
rewrites two hundred test files: compiling them again each time is half the cost of collecting and starting. The ban is
on files among the sources, so the bytecode goes into the virtual environment.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "pocketmq",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="POCKETMQ_NIGHTLY" not in os.environ,
    print_blob=True,
)
settings.load_profile("pocketmq")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.import_plugin("run_limits")


@pytest.fixture
def ctrl_c_as_on_a_terminal() -> Iterator[None]:
    """SIGINT and SIGHUP end this process and those that it starts: in the background of a shell, or with nohup, a suite
    ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, before)
    signal.signal(signal.SIGHUP, hangup)


if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(sys.prefix, "pycache"))
    # For the programs that tests start, and for the workers of pytest-xdist.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
