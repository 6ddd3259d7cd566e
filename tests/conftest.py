"""What holds for every test: how hypothesis searches, and that bytecode is kept from run to run.

hypothesis counts neither time nor slowness of an example: a busy machine is not a finding. Where CI is set it tries the
same examples each time, elsewhere new ones.

Bytecode is kept also where the environment forbids Python to write any. Some hundred tests start the program, and
pytest rewrites two hundred files of tests: compiled anew each time, that is half of what collecting and starting costs.
What was forbidden is files among the sources: these go into the virtual environment.
"""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

settings.register_profile(
    "pocketmq",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.load_profile("pocketmq")

if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(sys.prefix, "pycache"))
    # For the programs that tests start, and for the workers of pytest-xdist.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
