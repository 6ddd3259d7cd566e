"""Health and reflection, for tools: `grpcurl -plaintext 127.0.0.1:8081 list`, readiness probes.

The server is SERVING while the port is open. Neither needs a client id or a signature, as with the official proxy.
"""

from typing import Final

from ..messages.descriptors import files, symbols
from ..messages.inspection import (
    CHECK,
    HEALTH,
    REFLECT,
    WATCH,
    ErrorResponse,
    FileDescriptorResponse,
    HealthCheckRequest,
    HealthCheckResponse,
    ListServiceResponse,
    ServerReflectionRequest,
    ServerReflectionResponse,
    ServiceResponse,
    ServingStatus,
)
from ..messages.service import SERVICE
from .refusals import GrpcStatus, RpcFailed
from .registry import Handler
from .rpc_call import HELD, Held, RpcCall

_NOT_FOUND: Final = 5
_KNOWN: Final = ("", SERVICE, HEALTH)


def check_health(part: object, request: HealthCheckRequest, call: RpcCall) -> HealthCheckResponse:
    if request.service not in _KNOWN:
        raise RpcFailed(GrpcStatus.NOT_FOUND, f"unknown service {request.service}")
    return HealthCheckResponse(status=ServingStatus.SERVING)


def watch_health(part: object, request: HealthCheckRequest, call: RpcCall) -> Held:
    """One message now; the stream ends when the server does."""
    is_known = request.service in _KNOWN
    status = ServingStatus.SERVING if is_known else ServingStatus.SERVICE_UNKNOWN
    call.send(HealthCheckResponse(status=status))
    return HELD


class Reflection:
    """One stream of questions."""

    def __init__(self, part: object, call: RpcCall) -> None:
        self._call = call

    def received(self, message: ServerReflectionRequest) -> None:
        self._call.send(_reflected(message))

    def closed(self) -> None:
        """Nothing is kept."""


def _reflected(request: ServerReflectionRequest) -> ServerReflectionResponse:
    if request.list_services is not None:
        names = [ServiceResponse(name=name) for name in sorted(symbols())]
        return ServerReflectionResponse(
            valid_host=request.host,
            original_request=request,
            list_services_response=ListServiceResponse(service=names),
        )
    found: bytes | None = None
    wanted = request.file_by_filename or request.file_containing_symbol or ""
    if request.file_by_filename is not None:
        found = files().get(wanted)
    elif request.file_containing_symbol is not None:
        name = _file_of(wanted)
        found = None if name is None else files()[name]
    if found is None:
        return ServerReflectionResponse(
            valid_host=request.host,
            original_request=request,
            error_response=ErrorResponse(error_code=_NOT_FOUND, error_message=f"not found: {wanted}"),
        )
    return ServerReflectionResponse(
        valid_host=request.host,
        original_request=request,
        file_descriptor_response=FileDescriptorResponse(file_descriptor_proto=[found]),
    )


def _file_of(symbol: str) -> str | None:
    """The file that declares a service, a method or a message."""
    for service, file in symbols().items():
        package = service.rpartition(".")[0]
        if symbol in (service, package) or symbol.startswith((f"{service}.", f"{package}.")):
            return file
    return None


def inspection_handlers() -> dict[str, Handler]:
    """By path, bound."""
    found = [Handler(CHECK, check_health, object), Handler(WATCH, watch_health, object)]
    found += [Handler(rpc, Reflection, object) for rpc in REFLECT]
    return {handler.rpc.path: handler for handler in found}
