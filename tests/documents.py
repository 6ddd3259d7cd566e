"""A document's blocks, and a terminal that runs its commands; for `test_docs.py` and `spark/test_document.py`.

Every line of a `console` or `sh` block is run in a temporary folder that has a `.venv` and the files that a tutorial
has its reader save. Only this is replaced:

    make demo            is `.venv/bin/pocketmq demo`
    pocketmq serve       gets free ports, and runs until the next `serve` or the end of the document
    127.0.0.1:9876       is the name server of that server, in commands and in NAMESRV_ADDR
    127.0.0.1:8080       is its HTTP port, if it was started with `--admin-port 8080`
    127.0.0.1:8081       is its gRPC port, if it was started with `--grpc-port 8081`
"""

import ast
import doctest
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SERVE = re.compile(r"\.venv/bin/pocketmq serve\b(?!.*--print-config)")
ADDRESS = "127.0.0.1:9876"
ADMIN = "127.0.0.1:8080"
FREE_PORTS = "--port 0 --namesrv-port 0"
ANYTHING = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PROGRAM_AND_OUTPUT = re.compile(
    r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
NEXT_BLOCK = "-- next block"
END_SECONDS = 10


def blocks(document: Path, *languages: str) -> list[str]:
    found = FENCE.findall(document.read_text(encoding="utf-8"))
    return [text for language, text in found if language in languages]


def commands(document: Path) -> Iterator[tuple[str, str]]:
    """(command, what it prints) in order; the lines of `sh` blocks may print anything."""
    for language, text in FENCE.findall(document.read_text(encoding="utf-8")):
        if language == "sh":
            yield from ((line, "...") for line in text.splitlines())
        elif language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                lines = part.splitlines(keepends=True)
                more = [line for line in lines[1:] if line.startswith(">")]
                printed = "".join(lines[1 + len(more) :])
                yield lines[0] + "".join(line[2:] or "\n" for line in more), printed


def prints(expected: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(expected, printed, ANYTHING)


def named_files(document: Path) -> dict[str, str]:
    """The files that the reader of a tutorial saves: Python blocks that begin with their name, as a comment."""
    return {
        named[1]: text for text in blocks(document, "python") if (named := re.match(r"# (\w+\.py)\n", text))
    }


def section(heading: str, document: Path) -> str:
    """The text below a heading, up to the next one."""
    text = document.read_text(encoding="utf-8")
    matched = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert matched is not None, heading
    return matched[1]


def rows(text: str) -> list[list[str]]:
    """The cells of a table's rows, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def check_named_tests(line: str) -> bool:
    """Whether a line names a test, as `FILE.py::FUNCTION`; each that it names must exist."""
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", line)
    for path, function in named:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        functions = {
            node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert function in functions, f"{path} has no {function}"
    return bool(named)


class Terminal:
    """Runs a document's commands; the server it started last serves those that follow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = ADDRESS
        self._admin = ADMIN
        self._server: subprocess.Popen[str] | None = None
        (folder / ".venv").symlink_to(sys.prefix)
        self._environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}

    def run(self, command: str) -> str:
        """Run it and return what it printed; the exit code must be 0."""
        if SERVE.match(command):
            return self._serve(command.strip())
        command = command.replace("make demo", ".venv/bin/pocketmq demo")
        command = command.replace(ADDRESS, self.address).replace(ADMIN, self._admin)
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={**self._environment, "NAMESRV_ADDR": self.address},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"$ {command}\n{ran.stdout}{ran.stderr}"
        return ran.stdout.replace(self.address, ADDRESS).replace(self._admin, ADMIN)

    def check(self, command: str, expected: str) -> None:
        """Run it: it prints what the document shows."""
        printed = self.run(command)
        assert prints(expected, printed), f"$ {command}\n{printed}"

    def check_programs(self, *documents: Path) -> None:
        """All Python blocks are one program; a text block directly after one is its output."""
        examples = [
            example
            for document in documents
            for example in PROGRAM_AND_OUTPUT.findall(document.read_text(encoding="utf-8"))
        ]
        assert len(examples) == sum(len(blocks(document, "python")) for document in documents)
        programs = (program.replace(ADDRESS, self.address) for program, _ in examples)
        program = f"\nprint({NEXT_BLOCK!r})\n".join(programs)
        (self.folder / "examples.py").write_text(program, encoding="utf-8")
        printed = self.run(".venv/bin/python examples.py").split(f"{NEXT_BLOCK}\n")
        for (text, expected), output in zip(examples, printed, strict=True):
            assert not expected or prints(expected, output), f"{text}\n{output}"

    def _serve(self, command: str) -> str:
        self.end_server()
        has_admin = " --admin-port 8080" in command
        has_grpc = " --grpc-port 8081" in command
        command = command.replace(" --admin-port 8080", " --admin-port 0")
        command = command.replace(" --grpc-port 8081", " --grpc-port 0")
        environment = {name: value for name, value in self._environment.items() if name != "NAMESRV_ADDR"}
        with (self.folder / "server.log").open("w") as log:
            self._server = subprocess.Popen(
                ["bash", "-c", f"exec {command} {FREE_PORTS}"],
                cwd=self.folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        self.address = line.strip().partition("=")[2]
        assert self.address, (self.folder / "server.log").read_text()
        if has_admin:
            second = self._server.stdout.readline()
            self._admin = second.strip().partition("http://")[2]
            line += second.replace(self._admin, ADMIN)
        if has_grpc:
            line += re.sub(r":\d+$", ":8081", self._server.stdout.readline().rstrip("\n")) + "\n"
        return line.replace(self.address, ADDRESS)

    def end_server(self) -> None:
        """SIGTERM, and it must end cleanly."""
        server, self._server = self._server, None
        if server is None:
            return
        server.send_signal(signal.SIGTERM)
        try:
            server.communicate(timeout=END_SECONDS)
        finally:
            server.kill()
        assert server.returncode == 0, (self.folder / "server.log").read_text()
