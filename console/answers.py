"""What the port answers: JSON, and errors as `{"error": ..., "allowed": [...]}`.

    400  a value that is not allowed; `allowed` says which are     403  a request of another origin
    404  a topic, group or rule that does not exist                405  another method
    409  something this server does not have (virtual time, for example), or a topic that exists already

After an error nothing has changed. A function of a `Call` answers the address that its decorator `serves` names:
`app.py` serves all of these, `openapi.py` describes them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from pocketmq.broker.broker import Broker
from starlette.requests import Request
from starlette.responses import Response

from .pages import Reading
from .server_access import ServerAccess

JSON_BYTES: Final = 64 << 10
"""The longest body of which JSON objects are made: `[[],[],` needs twenty times its length."""
KindT = TypeVar("KindT")


class Problem(Exception):
    """Ends a request with an error."""

    def __init__(self, status: int, text: str, allowed: Sequence[object] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.allowed = list(allowed)


class Call(NamedTuple):
    """One request, on its way to its answer."""

    access: ServerAccess
    request: Request
    given: dict[str, str]
    """The parameters of the address, which have known names; empty ones are left out."""

    @property
    def broker(self) -> Broker:
        return self.access.broker

    @property
    def reading(self) -> Reading:
        return self.access.reading

    def in_path(self, name: str) -> str:
        """A part of the address."""
        value: str = self.request.path_params[name]
        return value


Answering = Callable[[Call], Awaitable[Response]]
"""Returns the answer, or raises `Problem`. The first sentence of its docstring describes it."""
JSON: Final = "application/json"
BINARY: Final = "application/octet-stream"


class Operation(msgspec.Struct, frozen=True):
    """One method of one address."""

    method: str
    path: str
    answering: Answering
    query: tuple[str, ...] = ()
    """Parameters that it may have; any other is refused if there are some."""
    answer: Any = None
    """The type of a JSON answer, or a tuple of them; None for an empty object."""
    body: Any = None
    """The type of a JSON body."""
    code: int = 200
    content: str = JSON
    """What the answer is; anything but JSON is text or bytes."""
    accepts: str = JSON
    """What the body is; of anything but JSON, `body` is `bytes`."""


OPERATIONS: Final[list[Operation]] = []
PAGES: Final = ("after", "limit")


def serves(
    method: str, path: str, query: tuple[str, ...] = (), answer: Any = None, body: Any = None, **more: Any
) -> Callable[[Answering], Answering]:
    """Makes a function an `Operation`."""

    def add(answering: Answering) -> Answering:
        OPERATIONS.append(Operation(method, path, answering, query, answer, body, **more))
        return answering

    return add


def as_json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def as_error(problem: Problem) -> Response:
    value: dict[str, Any] = {"error": problem.text}
    if problem.allowed:
        value["allowed"] = problem.allowed
    return as_json(value, problem.status)


async def read_body(request: Request, most_bytes: int) -> bytes:
    """The whole body. A body that is too long is refused before it is read."""
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most_bytes:
        raise _too_long(most_bytes)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most_bytes:
            raise _too_long(most_bytes)
        parts.append(part)
    return b"".join(parts)


def _too_long(most_bytes: int) -> Problem:
    return Problem(400, f"the body is too long: at most {most_bytes} bytes are read", [most_bytes])


async def read_json(request: Request, kind: type[KindT], most_bytes: int = JSON_BYTES) -> KindT:
    """A body that is a JSON object: with the fields of a struct, or any."""
    names = getattr(kind, "__struct_fields__", ("a JSON object",))
    return decoded(await read_body(request, most_bytes) or b"{}", kind, "the body", names)


def decoded(value: bytes | msgspec.Raw, kind: type[KindT], name: str, allowed: Sequence[str] = ()) -> KindT:
    """JSON of this name as a type; of msgspec's words of what is wrong, those behind the name of a field are kept."""
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.ValidationError as error:
        words, _, place = str(error).partition(" - at `$")
        expected = words.removeprefix("Expected ").partition(", got")[0].replace("`", "")
        if place.startswith("."):
            name, allowed = place[1:-1], ()
        raise Problem(400, f"{name}: {words:.500}", allowed or [expected]) from error
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"{name} is not valid JSON: {error!s:.500}", ["JSON"]) from error


def query_of(request: Request, allowed: Sequence[str]) -> dict[str, str]:
    """The parameters of the address, empty ones left out. An unknown one is refused."""
    given = dict(request.query_params)
    for name in given:
        if name not in allowed:
            raise Problem(400, f"unknown name {name!r:.60}; allowed: {', '.join(allowed)}", allowed)
    return {name: value for name, value in given.items() if value}


def number_of(given: Mapping[str, str], name: str, default: int, most: int = 1 << 62) -> int:
    """A whole number of the address, from 0 on."""
    text = given.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > 19 or int(text) > most:
        raise Problem(400, f"{name} must be a whole number from 0 to {most}, got {text!r:.60}", [0, most])
    return int(text)


def needed(given: Mapping[str, str], name: str) -> str:
    if name not in given:
        raise Problem(400, f"{name} is missing", [name])
    return given[name]
