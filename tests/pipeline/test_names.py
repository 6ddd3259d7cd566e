"""The names that users import from `pocketmq.pipeline`."""

import subprocess
import sys

import pytest


def test_importing_the_package_loads_nothing_else() -> None:
    program = (
        "import sys; before = set(sys.modules); import pocketmq.pipeline; "
        "assert set(sys.modules) - before == {'pocketmq', 'pocketmq.pipeline'}, set(sys.modules) - before"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_name_is_loaded_on_use() -> None:
    pytest.importorskip("pyspark")
    import pocketmq.pipeline

    for name in pocketmq.pipeline.__all__:
        assert getattr(pocketmq.pipeline, name).__module__.startswith("pocketmq.pipeline.")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pocketmq.pipeline.nothing
