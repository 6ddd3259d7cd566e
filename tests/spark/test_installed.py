"""PocketMQ as an archive for --py-files: imported by a Python that has no PocketMQ installed."""

import os
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from spark.installed import WheelUnavailable, make_archive, make_python, make_wheel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return make_wheel(tmp_path_factory.mktemp("wheel"))
    except WheelUnavailable as missing:
        pytest.skip(str(missing))


def test_an_archive_of_the_wheel_is_imported_where_nothing_is_installed(wheel: Path, tmp_path: Path) -> None:
    """Before 3.13 Python finds a package without an __init__ in an archive only by its folder's own entry."""
    python, archive = make_python(tmp_path / "python"), make_archive(tmp_path, wheel)
    program = "from pyspark_rocketmq import DefaultSource as one, __file__; print(one.name(), __file__)"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    for env, expected in ((kept | {"PYTHONPATH": str(archive)}, f"rocketmq {archive}"), (kept, "")):
        ran = subprocess.run(
            [str(python), "-c", program], capture_output=True, text=True, env=env, check=False
        )
        assert ran.stdout.startswith(expected) if expected else "No module named" in ran.stderr, ran.stderr
