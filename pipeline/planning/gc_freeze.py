"""Keeps imported modules out of the garbage collector in Spark's Python workers. No Spark.

A worker that Spark forks from its daemon collects garbage after every answer, however short the task was. With
pyarrow, pandas and Spark's own modules loaded, each search costs 25 to 50 ms of processor time, and a small read asks
five workers. What was loaded before the work begins lives as long as its worker, so it need not be searched again.
"""

import gc
import sys

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
