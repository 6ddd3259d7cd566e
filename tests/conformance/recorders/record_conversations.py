"""Record again what official brokers, the official proxy and mqadmin answer.

    PYTHONPATH=tests python -m conformance.recorders.record_conversations [NAME ...]

A name is that of a recorded file, without `.txt`. Needs Java, Maven and network namespaces.
"""

import asyncio
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from conformance.access import decisions
from conformance.admin import commands
from conformance.grpc.conversations import CONVERSATIONS
from conformance.grpc.side import Conversation
from conformance.official.servers import OfficialServer
from conformance.requests.conversations import TRANSCRIPTS
from conformance.requests.transcripts import LINES, Transcript
from conformance.servers.processes import ProgramFailed

Play = Callable[[Path], Iterable[str]]
"""The lines of a recording; official programs run in that folder."""


def recordings() -> Iterator[tuple[Path, Play]]:
    for transcript in TRANSCRIPTS:
        yield transcript.file, partial(_transcript, transcript)
    for line in LINES:
        yield decisions.recorded_file(line), partial(_decisions, line)
    for conversation in CONVERSATIONS:
        yield conversation.file, partial(_conversation, conversation)
    for tool, line in itertools.product(LINES, LINES):
        yield commands.recording(tool, line), partial(_commands, tool, line)


def _transcript(transcript: Transcript, home: Path) -> Iterable[str]:
    return transcript.play(OfficialServer(transcript.line, home, broker_conf=transcript.settings))


def _decisions(line: str, home: Path) -> Iterable[str]:
    official = OfficialServer(line, home, broker_conf=decisions.SETTINGS[line])
    return map(str, decisions.play(official, line))


def _conversation(conversation: Conversation, home: Path) -> Iterable[str]:
    return asyncio.run(conversation.with_the_official_proxy(home))


def _commands(tool: str, line: str, home: Path) -> Iterable[str]:
    official = OfficialServer(line, home, broker_conf=commands.conf(line))
    with official, commands.with_content(official) as content:
        table = [command for command in commands.TABLE if line == "5.5" or commands.OF_55 not in command]
        answers = content.answers(_Shell(official, tool), table)
    known = (
        answer
        for command, answer in zip(table, answers, strict=True)
        if not any(word in answer for word in commands.GIVEN_UP)
        or (tool == "5.5" and command in commands.REFUSED)
    )
    return "".join(known).splitlines()


class _Shell:
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


def main(names: list[str]) -> None:
    for file, play in recordings():
        if names and file.stem not in names:
            continue
        with tempfile.TemporaryDirectory(prefix=f"{file.stem}-") as home:
            lines = list(play(Path(home)))
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{file.stem}: {len(lines)} lines", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
