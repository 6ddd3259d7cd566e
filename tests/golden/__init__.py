"""Golden vectors: whole frames as official RocketMQ programs wrote them, recorded between official clients
and servers.

    from golden import vectors
    for vector in vectors(direction="request", request_code=310): ...

Not made by PocketMQ: record.py and README.md say how they were recorded. README.md explains the fields.
"""

import base64
import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "vectors"


@dataclass(frozen=True)
class Vector:
    """One recorded frame, from its length word to the end of its body."""

    server: str
    """Version of the server in the exchange: 4.9.7 or 5.5.0."""
    client: str
    """Version of the client: 4.9.8 or 5.5.0; for what a broker itself sends, the broker's version."""
    peer: str
    """Who the server is: namesrv or broker."""
    direction: str
    """request and reply (asked by the client), push and answer (asked by the server)."""
    code: int
    """Request code of a request or push, response code of a reply or answer."""
    request_code: int
    """The request code of the exchange, also for a reply or answer."""
    header: str
    """JSON or ROCKETMQ: how this frame's header is written."""
    frame: bytes

    def __str__(self) -> str:
        exchange = f"{self.direction}-{self.request_code}" + (
            "" if self.code == self.request_code else f"-{self.code}"
        )
        return f"{exchange}-{self.peer}-{self.server}-{self.client}-{self.header}"


@functools.cache
def all_vectors() -> tuple[Vector, ...]:
    """Every recorded frame, in the order of the files."""
    found = []
    for path in sorted(FOLDER.glob("*.jsonl")):
        for line in path.read_text(encoding="ascii").splitlines():
            fields = json.loads(line)
            found.append(Vector(**{**fields, "frame": base64.b64decode(fields["frame"])}))
    return tuple(found)


def vectors(**wanted: object) -> Iterator[Vector]:
    """The vectors whose fields equal all of the wanted ones, such as direction="reply", request_code=105."""
    for vector in all_vectors():
        if all(getattr(vector, name) == value for name, value in wanted.items()):
            yield vector
