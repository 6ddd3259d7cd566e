"""Official client programs at the server on :9876 of a namespace: examples, mqadmin, our own Java.

`Programs` belongs to one server side. `close` ends everything it started.
"""

import functools
import hashlib
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.official.jars import JavaProgram, PeersUnavailable, cache, jars, prepare_home
from conformance.servers.namespaces import Namespace
from conformance.servers.processes import CommandShell, Running

CLIENT_HEAP = ("-Xms32m", "-Xmx256m")
BINARY_HEADER = ("-Drocketmq.serialize.type=ROCKETMQ",)


@dataclass(frozen=True)
class Finished:
    """A program that ended: its exit code and what it printed (stdout and stderr together)."""

    code: int
    output: str

    @property
    def lines(self) -> list[str]:
        return [line for line in self.output.splitlines() if line.strip()]


class Programs:
    """Runs official programs in a namespace; each gets its own log file below home."""

    def __init__(self, namespace: Namespace, home: Path, namesrv_addr: str) -> None:
        self.namespace = namespace
        self.home = home
        self.namesrv_addr = namesrv_addr
        self._started: list[Running] = []
        self._shells: dict[str, AdminShell] = {}

    def run_java(
        self, program: JavaProgram, *args: str, java_opts: Sequence[str] = (), timeout: float = 60.0
    ) -> Finished:
        running = self.start_java(program, *args, java_opts=java_opts)
        code = running.finish(timeout)
        self._started.remove(running)
        return Finished(code, running.output)

    def start_java(self, program: JavaProgram, *args: str, java_opts: Sequence[str] = ()) -> Running:
        prepare_home(self.home)
        naming = f"-Drocketmq.namesrv.addr={self.namesrv_addr}"
        argv = program.command(self.home, (*CLIENT_HEAP, naming, *java_opts), args)
        name = f"{program.main.removeprefix('org.apache.rocketmq.')}-{program.version}"
        log = self.home / "out" / f"{name}-{uuid.uuid4().hex[:8]}.out"
        running = Running(self.namespace, argv, log, name=name)
        self._started.append(running)
        return running

    def admin_shell(self, version: str, java_opts: Sequence[str] = ()) -> "AdminShell":
        """A JVM that runs mqadmin commands one after the other; kept and shared per version and options."""
        key = " ".join((version, *java_opts))
        shell = self._shells.get(key)
        if shell is None or not shell.alive:
            self._shells[key] = shell = AdminShell(self, version, java_opts)
        return shell

    def close(self) -> None:
        for running in self._started:
            running.kill()
        self._started.clear()
        self._shells.clear()


class AdminShell(CommandShell):
    """mqadmin commands without a JVM start for each, `-n` added; a call returns what the command printed."""

    def __init__(self, programs: Programs, version: str, java_opts: Sequence[str] = ()) -> None:
        program = compile_java(version, Path(__file__).with_name("AdminShell.java"))
        super().__init__(lambda mark: programs.start_java(program, mark, java_opts=java_opts))
        self._namesrv_addr = programs.namesrv_addr

    def __call__(self, *words: str) -> str:
        return super().__call__(words[0], "-n", self._namesrv_addr, *words[1:])


def example(version: str, name: str) -> JavaProgram:
    return JavaProgram(version, f"org.apache.rocketmq.example.{name}")


@functools.cache
def compile_java(version: str, source: Path) -> JavaProgram:
    """The program of one Java source, compiled against the jars of a version."""
    classpath = ":".join(map(str, jars(version)))
    return JavaProgram(
        version, source.stem, (compiled(source, classpath, cache() / version.replace(".", "")),)
    )


def compiled(source: Path, classpath: str, folder: Path) -> Path:
    """The classes of one source file, whose main class has its name; kept in that folder of the cache."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    classes = folder / "classes" / f"{source.stem}-{digest}"
    if not classes.exists():
        unfinished = classes.with_name(f"{classes.name}.{uuid.uuid4().hex}")
        unfinished.mkdir(parents=True)
        javac = ["javac", "-encoding", "UTF-8", "-proc:none", "-nowarn", "-d", str(unfinished), "-cp"]
        ran = subprocess.run([*javac, classpath, str(source)], capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            shutil.rmtree(unfinished)
            raise PeersUnavailable(f"{source.name} does not compile:\n{ran.stderr[-3000:]}")
        if not classes.exists():
            unfinished.rename(classes)
    return classes
