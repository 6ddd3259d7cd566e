"""The clients that docs/behaviour.md compares: how each is fetched, built and run."""

import sys
from collections.abc import Callable
from pathlib import Path

from conformance.clients.foreign import (
    cpp_packages,
    go_program,
    grpc_python_packages,
    node_packages,
    rust_program,
)
from conformance.official.jars import cache, prepare_home
from conformance.official.local_proxy import library
from conformance.official.programs import CLIENT_HEAP, compile_java, compiled

HERE = Path(__file__).parent


def _python() -> list[str]:
    return [sys.executable, str(HERE / "python_client.py")]


def _java(version: str) -> list[str]:
    home = cache() / "behave" / version
    prepare_home(home)
    program = compile_java(version, HERE / "BehaveClient.java")
    return program.command(home, CLIENT_HEAP, ())


def _cpp() -> list[str]:
    return ["env", f"PYTHONPATH={cpp_packages()}", sys.executable, str(HERE / "cpp_client.py")]


def _javascript() -> list[str]:
    return ["env", f"NODE_PATH={node_packages()}", "node", str(HERE / "javascript_client.js")]


def _go() -> list[str]:
    return [str(go_program(HERE / "go"))]


def _rust() -> list[str]:
    return [str(rust_program(HERE / "rust", "behave"))]


def _grpc_java() -> list[str]:
    home, class_path = cache() / "behave" / "grpc52", library("grpc52")
    classes = compiled(HERE / "BehaveGrpcClient.java", class_path, home)
    return ["java", *CLIENT_HEAP, f"-Duser.home={home}", "-cp", f"{classes}:{class_path}", "BehaveGrpcClient"]


def _grpc_python() -> list[str]:
    packages = f"PYTHONPATH={grpc_python_packages()}"
    return ["env", packages, sys.executable, str(HERE / "grpc_python_client.py")]


CLIENTS: dict[str, Callable[[], list[str]]] = {
    "Java 4.9.8": lambda: _java("4.9"),
    "Java 5.5.0": lambda: _java("5.5"),
    "Go 2.1.2": _go,
    "Rust 1.0.0": _rust,
    "C++ 0.4.4": _cpp,
    "JavaScript ali-ons 3": _javascript,
    "PocketMQ": _python,
    "Java gRPC 5.2.0": _grpc_java,
    "Python gRPC 5.1.2": _grpc_python,
}
"""Name in the table, and what makes its command line; it raises `PeersUnavailable` if that cannot be had here."""
OF_GRPC = {name for name in CLIENTS if " gRPC " in name}
"""Those that use the gRPC port."""
