"""`pocketmq admin` beside an official broker: `python_admin_shell.py` inside its namespace."""

import base64
import re
import sys
import uuid
from pathlib import Path

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
