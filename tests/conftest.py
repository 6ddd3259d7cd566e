"""Bytecode is kept from run to run, also where the environment forbids Python to write any.

Some hundred tests start the program, and pytest rewrites two hundred files of tests: compiled anew each time, that is
half of what collecting and starting costs. What was forbidden is files among the sources: these go into the virtual
environment.
"""

import os
import sys
from pathlib import Path

if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(sys.prefix, "pycache"))
    # For the programs that tests start, and for the workers of pytest-xdist.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
