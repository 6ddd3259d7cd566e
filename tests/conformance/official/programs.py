"""Official client programs at the server on :9876 of a namespace: examples, mqadmin, our own Java.

`Programs` belongs to one server side. `close` ends everything it started.
"""

import base64
import functools
import hashlib
import re
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.official.jars import JavaProgram, PeersUnavailable, cache, jars, prepare_home
from conformance.servers.namespaces import Namespace
from conformance.servers.processes import Running

CLIENT_HEAP = ("-Xms32m", "-Xmx256m")
BINARY_HEADER = ("-Drocketmq.serialize.type=ROCKETMQ",)
ADMIN_TIMEOUT_S = 60.0


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

    def run_example(
        self, version: str, name: str, *args: str, java_opts: Sequence[str] = (), timeout: float = 60.0
    ) -> Finished:
        """An example such as "quickstart.Producer" (of org.apache.rocketmq.example) that ends by itself."""
        return self.run_java(example(version, name), *args, java_opts=java_opts, timeout=timeout)

    def start_example(self, version: str, name: str, *args: str, java_opts: Sequence[str] = ()) -> Running:
        """An example that does not end, usually a consumer: `.wait_for(pattern)` its words, then `.stop()`
        it.
        """
        return self.start_java(example(version, name), *args, java_opts=java_opts)

    def run_java(
        self, program: JavaProgram, *args: str, java_opts: Sequence[str] = (), timeout: float = 60.0
    ) -> Finished:
        running = self.start_java(program, *args, java_opts=java_opts)
        code = running.finish(timeout)
        self._started.remove(running)
        return Finished(code, running.output)

    def start_java(
        self, program: JavaProgram, *args: str, java_opts: Sequence[str] = (), client_options: bool = True
    ) -> Running:
        prepare_home(self.home)
        naming = (f"-Drocketmq.namesrv.addr={self.namesrv_addr}",) if client_options else ()
        argv = program.command(self.home, (*CLIENT_HEAP, *naming, *java_opts), args)
        name = f"{program.main.removeprefix('org.apache.rocketmq.')}-{program.version}"
        log = self.home / "out" / f"{name}-{uuid.uuid4().hex[:8]}.out"
        running = Running(self.namespace, argv, log, name=name)
        self._started.append(running)
        return running

    def mqadmin(
        self,
        version: str,
        command: str,
        *args: str,
        java_opts: Sequence[str] = (),
        timeout: float = ADMIN_TIMEOUT_S,
        with_namesrv: bool = True,
    ) -> Finished:
        """One mqadmin command in a JVM of its own, `-n` added. For many commands use `admin_shell`."""
        words = [command, *(("-n", self.namesrv_addr) if with_namesrv else ()), *args]
        return self.run_java(
            JavaProgram(version, "org.apache.rocketmq.tools.command.MQAdminStartup"),
            *words,
            java_opts=java_opts,
            timeout=timeout,
        )

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


class AdminShell:
    """mqadmin commands without a JVM start for each; a call returns what the command printed."""

    def __init__(self, programs: Programs, version: str, java_opts: Sequence[str] = ()) -> None:
        self._programs = programs
        self._mark = f"--- {uuid.uuid4().hex} ---"
        self._done = 1
        source = Path(__file__).with_name("AdminShell.java").read_text(encoding="utf-8")
        program = compile_java(version, source)
        self._running = programs.start_java(program, self._mark, java_opts=java_opts)
        self._running.wait_for(re.escape(self._mark))

    @property
    def alive(self) -> bool:
        return self._running.alive

    def __call__(
        self, command: str, *args: str, timeout: float = ADMIN_TIMEOUT_S, with_namesrv: bool = True
    ) -> str:
        """Raises ProgramFailed when the command ends the JVM or the time is up."""
        words = [command, *(("-n", self._programs.namesrv_addr) if with_namesrv else ()), *args]
        before = len(self._running.output)
        self._running.say(" ".join(base64.b64encode(word.encode()).decode() for word in words))
        self._done += 1
        self._running.wait_for(f"^{re.escape(self._mark)}$", timeout, count=self._done)
        return self._running.output[before:].replace(self._mark, "").strip("\n")

    def close(self) -> None:
        self._running.stop()


def example(version: str, name: str) -> JavaProgram:
    return JavaProgram(version, f"org.apache.rocketmq.example.{name}")


@functools.cache
def compile_java(version: str, source: str) -> JavaProgram:
    """Compile one Java source (its public class is the main class) against the jars of a version; kept in the
    cache.
    """
    matched = re.search(r"^public (?:final )?class (\w+)", source, re.MULTILINE)
    if matched is None:
        raise ValueError("no public class in the Java source")
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    classes = cache() / version.replace(".", "") / "classes" / f"{matched[1]}-{digest}"
    if not (classes / f"{matched[1]}.class").exists():
        unfinished = classes.with_name(f"{classes.name}.{uuid.uuid4().hex}")
        unfinished.mkdir(parents=True)
        file = unfinished / f"{matched[1]}.java"
        file.write_text(source, encoding="utf-8")
        classpath = ":".join(str(jar) for jar in jars(version))
        javac = [
            "javac",
            "-encoding",
            "UTF-8",
            "-proc:none",
            "-nowarn",
            "-d",
            str(unfinished),
            "-cp",
            classpath,
        ]
        compiled = subprocess.run([*javac, str(file)], capture_output=True, text=True, check=False)
        if compiled.returncode != 0:
            shutil.rmtree(unfinished)
            raise PeersUnavailable(
                f"{matched[1]}.java does not compile against {version}:\n{compiled.stderr[-3000:]}"
            )
        if not classes.exists():
            unfinished.rename(classes)
    return JavaProgram(version, matched[1], (classes,))
