"""What holds for every test: its time (`time_limit.py`), how hypothesis searches, and kept bytecode.

hypothesis counts neither time nor slowness of an example: a busy machine is not a finding. Where CI is set it tries the
same examples each time, elsewhere and at night (POCKETMQ_NIGHTLY) new ones; what fails prints how to repeat it.

Bytecode is kept even if the environment forbids Python to write it. About a hundred tests start the program, and pytest
rewrites two hundred test files: compiling them again each time is half the cost of collecting and starting. The ban is
on files among the sources, so the bytecode goes into the virtual environment.
"""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

from time_limit import pytest_runtest_call as pytest_runtest_call

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
