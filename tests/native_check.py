"""Runs the tests that compare the two forms of the core, with its C built for sanitizers: `make native-check`.

Run as a program it builds the extension beside the virtual environment and starts pytest; there it is a plugin, which
puts that build in the place of the installed one. A process without the preloaded sanitizer cannot load it.
"""

import importlib.util
import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = "POCKETMQ_SANITIZED_CORE"
"""Environment variable: path of the build."""
SANITIZE = [
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
]
WARN = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers", "-Werror"]
TESTS = ["core", "pipeline/records/test_scans.py"]


def build(folder: Path) -> Path:
    """Compile core/*.c; returns the path of the extension."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"native{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = sysconfig.get_paths()["include"]
    sources = sorted(map(str, (ROOT / "core").glob("*.c")))
    flags = ["-shared", "-fPIC", *WARN, f"-I{include}"]
    subprocess.run([*compiler(), *flags, *SANITIZE, *sources, "-o", str(target)], check=True)
    return target


def compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "cc"))


def library(name: str) -> str:
    found = subprocess.run(
        [*compiler(), f"-print-file-name={name}"], capture_output=True, text=True, check=True
    )
    return found.stdout.strip()


def main(arguments: list[str]) -> int:
    environment = {
        **os.environ,
        BUILT: str(build(Path(sys.prefix) / "native-check")),
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself keeps what it allocated
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
    }
    environment.pop("POCKETMQ_ACCELERATOR", None)
    command = [sys.executable, "-m", "pytest", "-p", "native_check", "-p", "no:xdist", *TESTS, *arguments]
    return subprocess.run(command, env=environment, cwd=ROOT / "tests", check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

if BUILT in os.environ:
    spec = importlib.util.spec_from_file_location("pocketmq.core.native", os.environ[BUILT])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["pocketmq.core.native"] = module
