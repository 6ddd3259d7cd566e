"""Official Java clients for gRPC: one jar each, and programs in one source file."""

from pathlib import Path

from conformance import JAVA
from conformance.official.local_proxy import library
from conformance.servers.processes import Running
from conformance.servers.server import Server

LIBRARIES = {"5.0.7": "grpc", "5.2.0": "grpc52"}
"""Version of `rocketmq-client-java` -> its pom."""


def start(server: Server, version: str, program: str, *words: str) -> Running:
    """A program of `tests/conformance/java`, which Java compiles on the fly."""
    home = server.home / f"{program}-{version}"
    home.mkdir(parents=True, exist_ok=True)
    options = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Duser.home={home}")
    source = str(JAVA / f"{program}.java")
    command = ["java", *options, "-cp", library(LIBRARIES[version]), source, *words]
    return Running(server.namespace, command, home / "out", name=f"{program} {version}", separate_errors=True)


def lines(server: Server, version: str, program: str, *words: str, seconds: float = 150) -> list[str]:
    """What the program printed, after it ended well."""
    with start(server, version, program, *words) as running:
        if running.finish(seconds) != 0:
            raise running.failed(f"ended badly: {Path(running.error_log).read_text()[-2000:]}")
        return [line for line in running.output.splitlines() if line.strip()]
