"""A Python with the packages of the running one, and PocketMQ as a wheel or not at all.

The wheel is made of a copy of the source, so that nothing is left in it. Where its build tools cannot be had (no
network) `WheelUnavailable` says so.
"""

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
