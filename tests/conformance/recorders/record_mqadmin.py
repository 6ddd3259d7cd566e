"""Record what mqadmin of each version prints to the official broker of each line.

    PYTHONPATH=tests python -m conformance.recorders.record_mqadmin

Needs Java, Maven and network namespaces.
"""

import itertools
import tempfile
from pathlib import Path

from conformance.admin import commands
from conformance.official.servers import OfficialServer
from conformance.requests.transcripts import LINES
from conformance.servers.processes import ProgramFailed


class Shell:
    """mqadmin; begun anew after a command that ended it, as unknown options do."""

    def __init__(self, official: OfficialServer, tool: str) -> None:
        self._official, self._tool = official, tool
        self._begin()

    def _begin(self) -> None:
        self._shell = self._official.programs.admin_shell(self._tool)

    def __call__(self, *words: str) -> str:
        try:
            return self._shell(*words)
        except ProgramFailed:
            self._begin()
            return commands.GIVEN_UP[0]


for tool, line in itertools.product(LINES, LINES):
    with tempfile.TemporaryDirectory(prefix="mqadmin-") as home:
        official = OfficialServer(line, Path(home), broker_conf=commands.conf(line))
        with official, commands.with_content(official) as content:
            table = [command for command in commands.TABLE if line == "5.5" or commands.OF_55 not in command]
            answers = content.answers(Shell(official, tool), table)
    known = [answer for answer in answers if not any(word in answer for word in commands.GIVEN_UP)]
    commands.recording(tool, line).write_text("".join(known), encoding="utf-8")
    print(f"{tool} at {line}: {len(known)} of {len(answers)} commands", flush=True)
