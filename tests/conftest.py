"""What holds for every test: how long it may take, how hypothesis searches, and that bytecode is kept from run to run.

A test that takes above two seconds and is not marked `slow` fails. The time that the machine kept it waiting does not
count: what Linux reports as pressure (some task waited for a processor, a disk or memory) is subtracted, and without
such a report the limit grows with the load. So a busy machine excuses a slow test, and never fails a quick one.

hypothesis counts neither time nor slowness of an example: a busy machine is not a finding. Where CI is set it tries the
same examples each time, elsewhere and at night (POCKETMQ_NIGHTLY) new ones; what fails prints how to repeat it.

Bytecode is kept also where the environment forbids Python to write any. Some hundred tests start the program, and
pytest rewrites two hundred files of tests: compiled anew each time, that is half of what collecting and starting costs.
What was forbidden is files among the sources: these go into the virtual environment.
"""

import os
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "pocketmq",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ and "POCKETMQ_NIGHTLY" not in os.environ,
    print_blob=True,
)
settings.load_profile("pocketmq")

if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(sys.prefix, "pycache"))
    # For the programs that tests start, and for the workers of pytest-xdist.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

SLOW_SECONDS = 2.0
MAY_BE_SLOW = ("slow", "soak", "interop", "spark")
PRESSURES = [Path("/proc/pressure", kind) for kind in ("cpu", "io", "memory")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    began, waited = time.monotonic(), seconds_of_waiting()
    result = yield
    seconds = time.monotonic() - began - (seconds_of_waiting() - waited)
    if seconds > SLOW_SECONDS * load_without_report() and not any(map(item.get_closest_marker, MAY_BE_SLOW)):
        pytest.fail(f"took {seconds:.1f} s: mark it slow, or make it quicker", pytrace=False)
    return result


def seconds_of_waiting() -> float:
    """How long in all some task of this machine could not run, since it started."""
    total = 0
    for path in PRESSURES:
        try:
            total += int(path.read_text("ascii").splitlines()[0].rpartition("total=")[2])
        except (OSError, ValueError, IndexError):
            continue
    return total / 1e6


def load_without_report() -> float:
    """How many tasks share a processor, where the machine does not report pressure; else 1."""
    if PRESSURES[0].exists():
        return 1.0
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
