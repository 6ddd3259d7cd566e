"""How many tasks a session runs at once, as far as a process that plans reads can know. Pure.

Spark plans a Python source's reads in processes of their own, in which there is no Spark context. The session hands the
number over in an environment variable (`session/session.py`). A source that Spark found by itself has none.
"""

import os
from collections.abc import Mapping
from typing import Final

PARALLELISM: Final = "POCKETMQ_SPARK_PARALLELISM"


def default_parallelism(environ: Mapping[str, str] | None = None) -> int:
    """The number that the session handed over, else the cores of this machine."""
    text = (os.environ if environ is None else environ).get(PARALLELISM, "")
    return max(1, int(text)) if text.isdigit() else os.cpu_count() or 1
