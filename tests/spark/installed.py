"""A Python with the packages of the running one, and PocketMQ as a wheel or not at all.

The wheel is made of a copy of the source, so that nothing is left in it. Where its build tools cannot be had (no
network) `WheelUnavailable` says so.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD_SECONDS = 180


class WheelUnavailable(RuntimeError):
    """The text is the reason for a skip."""


def make_wheel(folder: Path) -> Path:
    """PocketMQ's wheel."""
    source = folder / "source"
    names = [one.parent.name for one in ROOT.glob("*/py.typed")]
    for name in names:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    argv = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(source)]
    try:
        made = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise WheelUnavailable(f"no wheel within {BUILD_SECONDS} s") from error
    if made.returncode != 0:
        raise WheelUnavailable(f"no wheel can be built here: {made.stderr.strip()[-300:]}")
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
    """An environment packed by venv-pack: PocketMQ, and what it needs, without PySpark. `WheelUnavailable` without
    venv-pack."""
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
    argv = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--target",
        str(tool),
        "venv-pack",
        "setuptools<81",
    ]
    if subprocess.run(argv, capture_output=True, check=False, timeout=BUILD_SECONDS).returncode != 0:
        raise WheelUnavailable("venv-pack cannot be installed here")
    packed = folder.with_name(f"{folder.name}.tar.gz")
    words = ["-m", "venv_pack", "-p", str(folder), "-o", str(packed), "--compress-level", "1", "--quiet"]
    made = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, env={"PYTHONPATH": str(tool)}
    )
    if made.returncode != 0:
        raise WheelUnavailable(f"venv-pack failed: {made.stderr.strip()[-300:]}")
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
