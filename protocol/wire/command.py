"""One remoting command: the content of a frame, independent of the form of its header.

Mirrors `RemotingCommand`. The two header forms are in `json_header.py` and `binary_header.py`; `frame.py` puts
either one on a byte stream.
"""

from typing import Final

import msgspec

JSON: Final = 0
"""Serialize type 0: the header is JSON text."""
ROCKETMQ: Final = 1
"""Serialize type 1: the header is the compact binary form."""

RawBody = bytes | memoryview
"""The bytes of a body. Their forms are in `bodies/`."""

RESPONSE_FLAG: Final = 1
ONEWAY_FLAG: Final = 2


class Command(msgspec.Struct, gc=False):
    """A request (flag bit 0 clear) or a reply (bit 0 set), matched by `opaque` on its connection.

    `fields` are the header's `extFields`, every value a string; `None` if the frame had none. `body` is a view
    into the received bytes, `None` if empty: keep `bytes(body)` of what must outlive the request. Not seen by the
    garbage collector, which a log of a hundred thousand would cost 50 ms: nothing in it refers back to it.
    """

    code: int
    opaque: int = 0
    flag: int = 0
    remark: str | None = None
    fields: dict[str, str] | None = None
    body: RawBody | None = None
    language: str = "JAVA"
    version: int = 0
    header_type: int = JSON

    @property
    def is_reply(self) -> bool:
        return bool(self.flag & RESPONSE_FLAG)

    @property
    def is_oneway(self) -> bool:
        return bool(self.flag & ONEWAY_FLAG)
