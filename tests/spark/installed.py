"""A Python with the packages of the running one, and PocketMQ as a wheel or not at all.

The wheel is made of a copy of the source, so that nothing is left in it. Without its build tools (no network) the tests
are skipped.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

from spark.drivers import pip, run

ROOT = Path(__file__).resolve().parent.parent.parent


def make_wheel(folder: Path) -> Path:
    """PocketMQ's wheel."""
    source = folder / "source"
    names = [one.parent.name for one in ROOT.glob("*/py.typed")]
    for name in names:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    pip("wheel", "--quiet", "--no-deps", "-w", str(folder), str(source), what="a wheel")
    (wheel,) = folder.glob("*.whl")
    return wheel


def make_archive(folder: Path, wheel: Path) -> Path:
    """The wheel as an archive for --py-files, made as docs/pipeline.md says: with entries for its folders."""
    files, archive = folder / "files", folder / "pocketmq.zip"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(files)
    names = sorted(one.name for one in files.iterdir())
    subprocess.run([sys.executable, "-m", "zipfile", "-c", str(archive), *names], cwd=files, check=True)
    return archive


NOT_FOR_EXECUTORS = re.compile(
    r"(pyspark|mypy|ruff|pip|pytest|_pytest|hypothesis|xdist|duckdb|polars|_polars|setuptools)"
    r"|.*(pocketmq|pyspark).*",
    re.IGNORECASE,
)


def make_environment(folder: Path, wheel: Path) -> Path:
    """An environment packed by venv-pack: PocketMQ, and what it needs, without PySpark."""
    venv.create(folder, with_pip=False, symlinks=True)
    ours = Path(sysconfig.get_path("purelib"))
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    for entry in ours.iterdir():
        if NOT_FOR_EXECUTORS.match(entry.name) or entry.suffix == ".pth":
            continue
        if entry.is_dir():
            shutil.copytree(
                entry, packages / entry.name, ignore=shutil.ignore_patterns("__pycache__", "tests")
            )
        else:
            shutil.copy(entry, packages)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    tool = folder.with_name("venv-pack")
    pip("install", "--quiet", "--target", str(tool), "venv-pack", "setuptools<81", what="venv-pack")
    packed = folder.with_name(f"{folder.name}.tar.gz")
    words = ["-m", "venv_pack", "-p", str(folder), "-o", str(packed), "--compress-level", "1", "--quiet"]
    made = run([sys.executable, *words], {"PYTHONPATH": str(tool)})
    assert made.returncode == 0, made.stderr[-300:]
    return packed


def make_python(folder: Path, wheel: Path | None = None) -> Path:
    """A Python with the packages of this one but without its editable PocketMQ; with `wheel` installed where given."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    # A folder named in a .pth is searched, but its own .pth files, the editable install's among them, are not read.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    if wheel is not None:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(packages)
    return folder / "bin" / "python"
