"""Health and reflection, the two general services that tools ask: `grpcurl -plaintext 127.0.0.1:8081 list`, readiness
probes. Their messages, their rpcs and the handlers.

The server is SERVING while the port is open. Neither needs a client id or a signature, as with the official proxy.
"""

from enum import IntEnum
from functools import cache
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from ..messages import proto
from ..messages.service import FILE, MESSAGING, SERVICE, Kind, Rpc
from .handler import ANSWERS_LATER, Deferred, GrpcStatus, Handler, RpcFailed
from .rpc_call import RpcCall


class ServingStatus(IntEnum):
    UNKNOWN = 0
    SERVING = 1
    NOT_SERVING = 2
    SERVICE_UNKNOWN = 3


class HealthCheckRequest(proto.Message):
    """An empty name is the server as a whole."""

    service = proto.string(1)


class HealthCheckResponse(proto.Message):
    status = proto.enum(ServingStatus, 1)


HEALTH: Final = "grpc.health.v1.Health"
HEALTH_FILE: Final = "grpc/health/v1.proto"
proto.build(HEALTH_FILE, "grpc.health.v1", globals())


class ExtensionRequest(proto.Message):
    containing_type = proto.string(1)
    extension_number = proto.int32(2)


class ServerReflectionRequest(proto.Message):
    host = proto.string(1)
    file_by_filename = proto.string(3, oneof="message_request")
    file_containing_symbol = proto.string(4, oneof="message_request")
    file_containing_extension = proto.one(ExtensionRequest, 5, oneof="message_request")
    all_extension_numbers_of_type = proto.string(6, oneof="message_request")
    list_services = proto.string(7, oneof="message_request")


class FileDescriptorResponse(proto.Message):
    file_descriptor_proto = proto.repeated(bytes, 1)


class ServiceResponse(proto.Message):
    name = proto.string(1)


class ListServiceResponse(proto.Message):
    service = proto.repeated(ServiceResponse, 1)


class ErrorResponse(proto.Message):
    error_code = proto.int32(1)
    """A gRPC status."""
    error_message = proto.string(2)


class ServerReflectionResponse(proto.Message):
    valid_host = proto.string(1)
    original_request = proto.one(ServerReflectionRequest, 2)
    file_descriptor_response = proto.one(FileDescriptorResponse, 4, oneof="message_response")
    list_services_response = proto.one(ListServiceResponse, 6, oneof="message_response")
    error_response = proto.one(ErrorResponse, 7, oneof="message_response")


REFLECTIONS: Final = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
"""The same service by its two names: new tools ask the first, the official proxy has the second."""
REFLECTION_FILE: Final = "grpc/reflection/v1.proto"
proto.build(REFLECTION_FILE, "grpc.reflection.v1", globals())

CHECK: Final = Rpc("Check", HealthCheckRequest, HealthCheckResponse, service=HEALTH)
WATCH: Final = Rpc("Watch", HealthCheckRequest, HealthCheckResponse, Kind.SERVER_STREAM, HEALTH)
REFLECT: Final = tuple(
    Rpc("ServerReflectionInfo", ServerReflectionRequest, ServerReflectionResponse, Kind.BIDI, service)
    for service in REFLECTIONS
)
_NOT_FOUND: Final = 5
_KNOWN: Final = ("", SERVICE, HEALTH)
_FILES: Final = {SERVICE: FILE, HEALTH: HEALTH_FILE, **{rpc.service: REFLECTION_FILE for rpc in REFLECT}}
"""The file with the messages of each service."""


def check_health(request: HealthCheckRequest, call: RpcCall) -> HealthCheckResponse:
    if request.service not in _KNOWN:
        raise RpcFailed(GrpcStatus.NOT_FOUND, f"unknown service {request.service}")
    return HealthCheckResponse(status=ServingStatus.SERVING)


def watch_health(request: HealthCheckRequest, call: RpcCall) -> Deferred:
    """One message now; the stream ends when the server does."""
    is_known = request.service in _KNOWN
    status = ServingStatus.SERVING if is_known else ServingStatus.SERVICE_UNKNOWN
    call.send(HealthCheckResponse(status=status))
    return ANSWERS_LATER


class Reflection:
    """One stream of questions."""

    def __init__(self, call: RpcCall) -> None:
        self._call = call

    def received(self, message: ServerReflectionRequest) -> None:
        reply = ServerReflectionResponse(valid_host=message.host, original_request=message)
        _reflect(message, reply)
        self._call.send(reply)

    def closed(self) -> None:
        """Nothing is kept."""


def _reflect(request: ServerReflectionRequest, reply: ServerReflectionResponse) -> None:
    if request.HasField("list_services"):
        names = [ServiceResponse(name=name) for name in sorted(_FILES)]
        reply.list_services_response.CopyFrom(ListServiceResponse(service=names))
        return
    wanted = request.file_by_filename or request.file_containing_symbol
    name = wanted if request.HasField("file_by_filename") else _file_of(request.file_containing_symbol)
    file = _files().get(name)
    if file is None:
        error = ErrorResponse(error_code=_NOT_FOUND, error_message=f"not found: {wanted}")
        reply.error_response.CopyFrom(error)
    else:
        reply.file_descriptor_response.CopyFrom(FileDescriptorResponse(file_descriptor_proto=[file]))


@cache
def _files() -> dict[str, bytes]:
    """Name of a file -> its `FileDescriptorProto`, with its service."""
    found = dict(proto.files)
    for rpcs in (MESSAGING, (CHECK, WATCH), *((rpc,) for rpc in REFLECT)):
        package, _, service_name = rpcs[0].service.rpartition(".")
        file = FileDescriptorProto.FromString(proto.files[_FILES[rpcs[0].service]])
        if file.package != package:
            _rename(file, package)
        service = file.service.add(name=service_name)
        for rpc in rpcs:
            service.method.add(
                name=rpc.name,
                input_type=f".{package}.{rpc.request.__name__}",
                output_type=f".{package}.{rpc.reply.__name__}",
                client_streaming=rpc.kind is Kind.BIDI,
                server_streaming=rpc.kind is not Kind.UNARY,
            )
        found[file.name] = file.SerializeToString()
    return found


def _rename(file: FileDescriptorProto, package: str) -> None:
    """The same messages in another package."""
    for message in file.message_type:
        for field in message.field:
            field.type_name = field.type_name.replace(f".{file.package}.", f".{package}.")
    file.name, file.package = package.replace(".", "/") + ".proto", package


def _file_of(symbol: str) -> str:
    """The file that declares a service, a method or a message; empty if none does."""
    for name, data in _files().items():
        file = FileDescriptorProto.FromString(data)
        declared = (*file.message_type, *file.enum_type, *file.service)
        names = [f"{file.package}.{one.name}" for one in declared]
        if any(symbol == one or symbol.startswith(f"{one}.") for one in names):
            return name
    return ""


def inspection_handlers() -> dict[str, Handler]:
    """By path."""
    found = [Handler(CHECK, check_health), Handler(WATCH, watch_health)]
    found += [Handler(rpc, Reflection) for rpc in REFLECT]
    return {handler.rpc.path: handler for handler in found}
