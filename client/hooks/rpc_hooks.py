"""Hooks on requests: they see every request to a server, and may add fields to its header.

`Connection` calls them: `before_request` with the fields of each request before it leaves, `after_response` with each
answer that arrives in time. They run in the official order: the namespace, the stream mark, then the user's own, so
that a signature (`acl.py`) covers what the others added. Mirrors `RPCHook`, `NamespaceRpcHook`, `StreamTypeRPCHook`.
"""

from dataclasses import dataclass
from typing import Any, Final

from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.schema import Request

STREAM: Final = "0"
"""Official RequestType.STREAM."""


class RPCHook:
    """Override what you need. An exception of a hook is raised by the call it was about."""

    def before_request(
        self, address: str, request: Request[Any], fields: dict[str, str], body: RawBody | None
    ) -> None:
        """A request is about to leave for `address`; `fields` is its header, and may get more fields."""

    def after_response(self, address: str, request: Request[Any], response: Command) -> None:
        """The answer to a request arrived, whatever its code."""


@dataclass(frozen=True)
class NamespaceRpcHook(RPCHook):
    """Every request has the namespace in two fields of its own (`namespace_v2`)."""

    namespace: str

    def before_request(
        self, address: str, request: Request[Any], fields: dict[str, str], body: RawBody | None
    ) -> None:
        fields["nsd"] = "true"
        fields["ns"] = self.namespace


@dataclass(frozen=True)
class StreamTypeRPCHook(RPCHook):
    """Marks requests as those of a stream (`enable_stream_request_type`), which lite pull consumers do by default."""

    def before_request(
        self, address: str, request: Request[Any], fields: dict[str, str], body: RawBody | None
    ) -> None:
        fields["ReqT"] = STREAM
