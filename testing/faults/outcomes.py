"""What a function of a test may decide about a request.

from pocketmq.testing import DROP, PASS, Refused, Reply

def twice_busy(request):
    if request.queue_id == 0:
        raise Refused("SYSTEM_BUSY", "try later")
    return PASS
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from ..errors import WrongValueError
from ..requests.values import response_code


class Decision(Enum):
    """`PASS`: the broker handles the request as usual. `DROP`: it is not handled and never answered."""

    PASS = "PASS"
    DROP = "DROP"

    def __repr__(self) -> str:
        return self.name


PASS: Final = Decision.PASS
DROP: Final = Decision.DROP


class Reply:
    """A reply: response code (official name or number), header fields, body and remark. All may be changed."""

    def __init__(
        self,
        code: str | int = 0,
        fields: Mapping[str, object] | None = None,
        body: bytes | str = b"",
        remark: str | None = None,
    ) -> None:
        self.code: str | int = response_code("code", code)
        self.fields: dict[str, Any] = dict(fields or {})
        self.body: bytes | str = body
        self.remark = remark

    def __repr__(self) -> str:
        return (
            f"Reply(code={self.code!r}, fields={self.fields!r}, body={self.body!r}, remark={self.remark!r})"
        )


class Refused(Exception):
    """Raised by a function of a test: the request is answered with this code (official name or number) and remark."""

    def __init__(self, code: str | int, remark: str = "") -> None:
        self.code = response_code("code", code)
        self.remark = remark
        super().__init__(f"{code}: {remark}" if remark else str(code))


def wire_fields(fields: Mapping[str, object]) -> dict[str, str]:
    """Header fields as text: booleans as true and false. `WrongValueError` for a name that is no text."""
    found = {}
    for name, value in fields.items():
        if not isinstance(name, str) or not name:
            raise WrongValueError(f"the name of a field must be a text, got {name!r}", ["a text"])
        found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def wire_body(body: object) -> bytes:
    """A body as bytes; text in UTF-8."""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    raise WrongValueError(f"body must be bytes or text, got {body!r}", ["bytes", "a text"])
