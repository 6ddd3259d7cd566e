"""Conversations with a broker, recorded from the official ones: the same requests, and how each was answered.

A `Transcript` is one conversation with a fresh broker of one line. `recorded/` holds the official side as text, one
answer a line; `test_transcripts.py` compares ours with it every day, without Java, and the official brokers at night.
`make golden` records again (`tests/conformance/recorders/record_conversations.py`).

    = 0017 11 3f2a90cc -> 24 | 'the consumer's group info not exist' ...     request 17, code 11: answer and its details
    ~ 0018 11 77b1de02 -> 1                                                  only the code counts

The second form is for requests over which the official broker stumbles: its words are those of a Java exception. The
eight hex digits are a digest of the request: a request that is changed has to be recorded again.
"""

import difflib
import hashlib
import hmac
import re
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformance.servers.raw_client import RawClient
from conformance.servers.remoting import Reply
from conformance.servers.server import Server

RECORDED = Path(__file__).parent / "recorded"
LINES = ("4.9", "5.5")
PULL_MESSAGE, PULL_NOT_FOUND = 11, 19
WAIT_SECONDS = 10
PEER = re.compile(r"127\.0\.0\.1:\d{4,}")
AT_SOURCE = re.compile(r", (java\.base/|org\.apache\.|com\.alibaba)\S+\(\S+\)$")


@dataclass
class Row:
    """One request. `who` signs it, with a name and a secret; a secret of None leaves the signature out.

    With `waits` it is repeated until there is a message to read.
    """

    who: tuple[str, str | None] | None
    code: int
    fields: dict[str, object] = field(default_factory=dict)
    body: bytes = b""
    waits: bool = False

    def signed_fields(self) -> dict[str, str]:
        """Header fields as texts, with key and signature.

        Written out here a second time, so that an error in ours cannot hide in itself.
        """
        fields = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in self.fields.items()
        }
        if self.who is not None:
            name, secret = self.who
            fields["AccessKey"] = name
            if secret is not None:
                content = "".join(fields[key] for key in sorted(fields)).encode() + self.body
                digest = hmac.new(secret.encode(), content, hashlib.sha1).digest()
                fields["Signature"] = b64encode(digest).decode()
        return fields

    @property
    def digest(self) -> str:
        return f"{zlib.crc32(repr((self.who, self.code, self.fields, self.body)).encode()):08x}"


Conversation = Generator[Row, Reply, None]
"""A row may need what an earlier one was answered."""


def remark_of(reply: Reply) -> str:
    """The remark, without the line of Java source that some official remarks end in, and without ports."""
    return PEER.sub("PEER", AT_SOURCE.sub("", reply.remark))


@dataclass(frozen=True)
class Transcript:
    """`rows` are sent one after the other once `prepared` has made the state; `shown` is what counts of an answer."""

    name: str
    line: str
    rows: Callable[[], Iterator[Row]] = lambda: iter(())
    shown: Callable[[Row, Reply], str] = lambda row, reply: reply.remark
    fell_over: re.Pattern[str] = re.compile(r"java\.\S+(Exception|Error)\b|Cannot invoke ")
    settings: Mapping[str, object] = field(default_factory=dict)
    before_start: Callable[[Server], None] = lambda _: None
    prepared: Callable[[RawClient], None] = lambda _: None
    asked: list[Row] = field(default_factory=list)
    """The rows as they were sent last."""

    @property
    def file(self) -> Path:
        return RECORDED / f"{self.name}_{self.line.replace('.', '')}.txt"

    def play(self, server: Server) -> list[str]:
        """Start `server`, have the conversation, close it: the lines of a recording."""
        self.before_start(server)
        with server, RawClient(server) as client:
            self.prepared(client)
            said = []
            for number, (row, reply) in enumerate(self._exchanges(client)):
                # Official brokers show a message a little after they acknowledged it: "not found yet" counts as found.
                code = 0 if (row.code, reply.code) == (PULL_MESSAGE, PULL_NOT_FOUND) else reply.code
                head = f"{number:04} {row.code} {row.digest} -> {code}"
                if self.fell_over.search(reply.remark):
                    said.append(f"~ {head}")
                else:
                    details = self.shown(row, reply).replace(str(server.store), "STORE")
                    said.append(f"= {head} | {details}".replace("\n", "\\n").rstrip())
        return said

    def _exchanges(self, client: RawClient) -> Iterator[tuple[Row, Reply]]:
        self.asked.clear()
        rows = self.rows()
        row = next(rows)
        while True:
            self.asked.append(row)
            reply = client.call_unless_busy(row.code, row.body, **row.signed_fields())
            deadline = time.monotonic() + WAIT_SECONDS
            while row.waits and reply.code == PULL_NOT_FOUND and time.monotonic() < deadline:
                reply = client.call(row.code, row.body, **row.signed_fields())
            yield row, reply
            try:
                row = rows.send(reply) if isinstance(rows, Generator) else next(rows)
            except StopIteration:
                return

    def recorded(self) -> list[str]:
        return self.file.read_text(encoding="utf-8").splitlines()

    def differences(self, said: list[str]) -> str:
        """What differs from the recording, with the requests; empty where nothing does."""
        recorded = self.recorded()
        shortened = [
            "~ " + line[2:].partition(" | ")[0] if official.startswith("~") else line
            for line, official in zip(said, recorded, strict=False)
        ]
        shortened += said[len(recorded) :]
        if shortened == recorded:
            return ""
        rows = self.asked
        found = list(difflib.unified_diff(recorded, shortened, "recorded", "now", lineterm="", n=0))
        numbers = {int(line[3:7]) for line in found if re.match(r"[-+][=~] \d{4} ", line)}
        asked = [
            f"{number:04} asked {str(rows[number])[:400]}" for number in sorted(numbers) if number < len(rows)
        ]
        return "\n".join([*found, *asked])
