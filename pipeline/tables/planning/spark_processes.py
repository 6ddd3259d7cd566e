"""What code needs to know about the processes in which Spark runs it: its Python workers, and those that plan reads. No
Spark.

A worker that Spark forks from its daemon collects garbage after every answer, however short the task was. With
pyarrow, pandas and Spark's own modules loaded, each search costs 25 to 50 ms of processor time, and a small read asks
five workers. What was loaded before the work begins lives as long as its worker, so it need not be searched again.

Spark plans a Python source's reads in processes of their own, in which there is no Spark context. The session hands
the number of tasks that it runs at once over in an environment variable (`spark/session/session.py`). A source that
Spark found by itself has none.
"""

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from ...errors import PipelineError

PARALLELISM: Final = "POCKETMQ_SPARK_PARALLELISM"

_known_modules = 0
"""How many modules were loaded at the last call."""


def freeze_imports() -> None:
    """Exempt everything that exists from this worker's searches for garbage. Call it before the work begins.

    Then no garbage of the task exists yet: the worker has collected that of the last one. It does something again only
    after more modules have been imported, and nothing in a process that is not such a worker (a driver, a test).
    """
    global _known_modules
    if len(sys.modules) != _known_modules and _is_forked_by_daemon():
        gc.freeze()
        _known_modules = len(sys.modules)


def _is_forked_by_daemon() -> bool:
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return main is not None and main.name == "pyspark.daemon"


@contextmanager
def in_worker() -> Iterator[None]:
    """Around every call of Spark into a reader: keeps imports out of garbage collection, and errors short. Spark prints
    an error with all its causes and their stacks as one text, in which the user would have to look for the reason. The
    message names that already."""
    freeze_imports()
    try:
        yield
    except PipelineError as error:
        raise error.with_traceback(None) from None


def default_parallelism(environ: Mapping[str, str] | None = None) -> int:
    """The number that the session handed over, else the cores of this machine."""
    text = (os.environ if environ is None else environ).get(PARALLELISM, "")
    return max(1, int(text)) if text.isdigit() else os.cpu_count() or 1
