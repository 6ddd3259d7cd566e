"""The measurements of RESULTS.md, each a program: `python -m bench.send_path`, from the project's folder.

Official programs and servers are started by `tests/conformance`.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
