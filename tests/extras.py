"""For conftests of tests that need an extra: a file that imports what is not installed is skipped, and says so.

from extras import pytest_pycollect_makemodule as pytest_pycollect_makemodule
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

OF_EXTRAS = frozenset(("duckdb", "numpy", "pyarrow", "pyspark"))


class ModuleOfExtras(pytest.Module):
    """A file of tests that may need an extra."""

    def collect(self) -> Iterable[Any]:
        try:
            return super().collect()
        except self.CollectError as error:
            missing = str(getattr(error.__cause__, "name", "")).partition(".")[0]
            if missing not in OF_EXTRAS:
                raise
            raise pytest.skip.Exception(f"{missing} is not installed: it is in an extra") from error


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    return ModuleOfExtras.from_parent(parent, path=module_path)
