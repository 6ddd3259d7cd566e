"""Clients in other languages: their packages, fetched once into the cache of the official programs.

Each function returns a folder or a program, and raises `PeersUnavailable` if a tool or a package is missing.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from conformance.official.jars import PeersUnavailable, cache

FETCH_SECONDS = 300
RUST_SECONDS = 1500


def _fetched(folder: Path, *command: str) -> Path:
    """The folder, filled by the command at its first use."""
    if not (folder / ".complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _ran(folder, *command)
        (folder / ".complete").touch()
    return folder


def _ran(folder: Path, *command: str, seconds: float = FETCH_SECONDS, **environment: str) -> None:
    try:
        subprocess.run(
            command,
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=seconds,
            env={**os.environ, **environment},
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise PeersUnavailable(f"cannot be fetched: {command[0]}: {error}") from error


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise PeersUnavailable(f"not on PATH: {name}")
    return found


def cpp_packages() -> Path:
    """For PYTHONPATH: the C++ client in the Python package `rocketmq`."""
    if sys.platform != "linux":
        raise PeersUnavailable("the package `rocketmq` brings a Linux library")
    words = ("--disable-pip-version-check", "install", "--no-deps", "--target", ".", "rocketmq==0.4.4")
    return _fetched(cache() / "foreign" / "rocketmq-0.4.4", sys.executable, "-m", "pip", *words)


def node_packages() -> Path:
    """For NODE_PATH: the JavaScript client `ali-ons`."""
    _tool("node")
    words = ("install", "--no-audit", "--no-fund", "ali-ons@3", "urllib@2")
    return _fetched(cache() / "foreign" / "ali-ons-3", _tool("npm"), *words) / "node_modules"


def go_program(source: Path) -> Path:
    """A Go module, built; again if one of its files is newer than the program."""
    program = cache() / "foreign" / "go" / source.name
    if _is_old(program, source):
        program.parent.mkdir(parents=True, exist_ok=True)
        _ran(source, _tool("go"), "build", "-o", str(program), ".", GOFLAGS="-mod=mod")
    return program


def _is_old(program: Path, source: Path) -> bool:
    newest = max(file.stat().st_mtime for file in source.rglob("*") if file.is_file())
    return not program.exists() or program.stat().st_mtime < newest


def grpc_python_packages() -> Path:
    """For PYTHONPATH: the official gRPC client for Python, with the gRPC library that it needs."""
    words = ("--disable-pip-version-check", "install", "--target", ".", "rocketmq-python-client==5.1.2")
    return _fetched(cache() / "foreign" / "grpc-python-5.1.2", sys.executable, "-m", "pip", *words)


def grpc_node_packages() -> Path:
    """For NODE_PATH: the official gRPC client for Node."""
    _tool("node")
    words = ("install", "--no-audit", "--no-fund", "rocketmq-client-nodejs@1.0.8")
    return _fetched(cache() / "foreign" / "grpc-node-1.0.8", _tool("npm"), *words) / "node_modules"


def rust_program(source: Path, name: str) -> Path:
    """The program of a Rust package, built; the first time takes many minutes."""
    target = cache() / "foreign" / "rust" / source.parent.name
    program = target / "debug" / name
    if _is_old(program, source):
        target.mkdir(parents=True, exist_ok=True)
        _ran(source, _tool("cargo"), "build", seconds=RUST_SECONDS, CARGO_TARGET_DIR=str(target))
    return program
