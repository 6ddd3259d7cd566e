"""`pocketmq admin` beside mqadmin: runs the same commands in both, and compares what they print.

`official/programs.py` has mqadmin's shell; the program inside the server's namespace is `python_admin_shell.py`.
"""

import base64
import re
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path

from conformance.admin.admin_masks import in_any_order
from conformance.admin.admin_scenario import PLACES
from conformance.official.programs import AdminShell
from conformance.servers.processes import Running
from conformance.servers.server import Server

HERE = Path(__file__).parent
JAVA, PYTHON = "java", "pyth"
"""What each tool says for @ in the commands that change something: names of one length."""
MADE_OF_AN_OFFSET = re.compile(r"@\d+$|\b(7F\w{30})\b", re.MULTILINE)


class PythonShell:
    """`pocketmq admin` inside the server's namespace, in one process for many commands."""

    def __init__(self, server: Server) -> None:
        self._mark = f"--- {uuid.uuid4().hex} ---"
        self._done = 1
        argv = [sys.executable, str(HERE / "python_admin_shell.py"), self._mark]
        log = server.home / "run" / "pocketmq-admin.out"
        self._running = Running(server.namespace, argv, log, name="pocketmq admin")
        self._running.wait_for(re.escape(self._mark))

    def __call__(self, *words: str) -> str:
        before = len(self._running.output)
        self._running.say(" ".join(base64.b64encode(word.encode()).decode() for word in words))
        self._done += 1
        self._running.wait_for(f"^{re.escape(self._mark)}$", 60, count=self._done)
        return self._running.output[before:].replace(self._mark, "").strip("\n")

    def close(self) -> None:
        self._running.kill()


def settled(text: str) -> str:
    """Without what differs between two moments or two clients."""
    for pattern, word in PLACES:
        text = pattern.sub(word, text)
    text = re.sub(r"\b20\d{15}\b|(?<==)1969\d{13}|(?<==)1970\d{13}", "DIGITS", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def differences_of(java: AdminShell, python: PythonShell, lines: Iterable[str]) -> list[str]:
    """The commands to which the two tools print different answers, with both; an answer's lines may be in any order."""
    differences = []
    for line in lines:
        official = settled(java(*line.replace("@", JAVA).split())).replace(JAVA, "@")
        ours = settled(python(*line.replace("@", PYTHON).split())).replace(PYTHON, "@")
        pair = [in_any_order(MADE_OF_AN_OFFSET.sub("", text)) for text in (official, ours)]
        if pair[0] != pair[1]:
            differences.append(f"$ {line}\n--- mqadmin\n{official}\n--- ours\n{ours}")
    return differences
