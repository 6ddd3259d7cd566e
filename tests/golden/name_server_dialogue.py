"""One long conversation with a name server, and the official programs' side of it.

`play` sends the `STEPS` of `name_server_steps.py` to an address and returns the answers in the same order.
`name_server_49.json` and `name_server_55.json` hold the official answers, recorded by

    cd tests; python -m golden.name_server_dialogue HOST:PORT 5 > golden/name_server_55.json

against a freshly started name server without a configuration file. So the expected answers do not depend on how anyone
reads the protocol. Not PocketMQ's codec, on purpose. `tests/broker/name_server/test_name_server.py` compares.
"""

import asyncio
import contextlib
import json
import re
import struct
import sys
from functools import partial
from pathlib import Path

from .name_server_steps import STEPS, Fields, Step, text

HERE = Path(__file__).parent
WORDS = struct.Struct(">iI")
SETTLE_SECONDS = 0.25
"""The official 5.x name server takes unregistrations and closed connections in a thread of its own."""
SILENCE_SECONDS = 1.0


class Talker:
    """Connections by name and the listening addresses of one run."""

    def __init__(self, host: str, port: int, settle_seconds: float) -> None:
        self.host, self.port = host, port
        self.settle_seconds = settle_seconds
        self.connections: dict[str, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self.listeners: list[asyncio.Server] = []
        self.addresses: dict[str, str] = {}
        self.heard: list[Fields] = []

    async def listen(self) -> None:
        for name in "abcdef":
            server = await asyncio.start_server(partial(self._hear, name), "127.0.0.1", 0)
            self.listeners.append(server)
            self.addresses[name] = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _hear(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                header, _ = await read_frame(reader)
                fields = {
                    key: self.hidden(str(value)) for key, value in (header.get("extFields") or {}).items()
                }
                self.heard.append(
                    {"at": name, "code": header["code"], "flag": header["flag"], "fields": fields}
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def shown(self, value: object) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        return re.sub(r"\{([a-f])\}", lambda match: self.addresses[match[1]], str(value))

    def hidden(self, value: str) -> str:
        for name, address in self.addresses.items():
            value = value.replace(address, f"{{{name}}}")
        return value

    async def say(self, step: Step, opaque: int) -> Fields | None:
        """The answer to one step; None if none arrives within a second."""
        if step.close:
            if step.on in self.connections:
                self.connections.pop(step.on)[1].close()
            await asyncio.sleep(self.settle_seconds)
            return {"closed": True}
        if step.on not in self.connections:
            self.connections[step.on] = await asyncio.open_connection(self.host, self.port)
        reader, writer = self.connections[step.on]
        fields = {key: self.shown(value) for key, value in step.fields.items()}
        header = {
            "code": step.code, "extFields": fields, "flag": 0, "language": "JAVA", "opaque": opaque,
            "serializeTypeCurrentRPC": "JSON", "version": step.version,
        }  # fmt: skip
        writer.write(frame(header, step.body))
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                answer, content = await read_frame(reader)
        except TimeoutError:
            return None
        if step.code == 104:
            await asyncio.sleep(self.settle_seconds)
        assert answer["opaque"] == opaque, (step, answer)
        received = {key: self.hidden(value) for key, value in (answer.get("extFields") or {}).items()}
        return {
            "code": answer["code"],
            "remark": answer.get("remark"),
            "fields": received,
            "body": self.hidden(content.decode()),
        }

    async def close(self) -> None:
        for _, writer in self.connections.values():
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        for listener in self.listeners:
            listener.close()


def frame(header: Fields, content: bytes) -> bytes:
    encoded = text(header)
    return WORDS.pack(4 + len(encoded) + len(content), len(encoded)) + encoded + content


async def read_frame(reader: asyncio.StreamReader) -> tuple[Fields, bytes]:
    length, word = WORDS.unpack(await reader.readexactly(WORDS.size))
    rest = await reader.readexactly(length - 4)
    size = word & 0xFFFFFF
    return json.loads(rest[:size]), rest[size:]


async def play(host: str, port: int, line: int, settle_seconds: float = SETTLE_SECONDS) -> list[Fields]:
    """The answers of the name server at `host:port`, of line 4 or 5: one per step, with what the brokers
    heard.
    """
    talker = Talker(host, port, settle_seconds)
    await talker.listen()
    answers: list[Fields] = []
    try:
        for opaque, step in enumerate((each for each in STEPS if each.since <= line), 1):
            answer = await talker.say(step, opaque)
            if line == 5 and step.title.startswith(("slave", "the master", "connection of slave")):
                await asyncio.sleep(settle_seconds)
            heard, talker.heard = talker.heard, []
            answers.append({"step": step.title, "answer": answer, "heard": heard})
    finally:
        await talker.close()
    return answers


def recorded(line: int) -> list[Fields]:
    """What the official name server of line 4 or 5 answered."""
    name = "name_server_55.json" if line == 5 else "name_server_49.json"
    answers: list[Fields] = json.loads((HERE / name).read_text(encoding="utf-8"))
    return answers


if __name__ == "__main__":
    address, _, port_text = sys.argv[1].rpartition(":")
    spoken = asyncio.run(play(address, int(port_text), int(sys.argv[2])))
    sys.stdout.write(json.dumps(spoken, indent=1, ensure_ascii=False) + "\n")
