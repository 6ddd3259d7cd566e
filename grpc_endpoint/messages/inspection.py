"""Health and reflection: the two general services that tools ask (grpcurl, Kubernetes), and their messages."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, Final

from ..wire.declare import Int32, Message, OneOf
from .service import Kind, Rpc


class ServingStatus(IntEnum):
    UNKNOWN = 0
    SERVING = 1
    NOT_SERVING = 2
    SERVICE_UNKNOWN = 3


class HealthCheckRequest(Message, frozen=True, kw_only=True):
    service: Annotated[str, 1] = ""
    """Empty: the server as a whole."""


class HealthCheckResponse(Message, frozen=True, kw_only=True):
    status: Annotated[ServingStatus, 1] = ServingStatus.UNKNOWN


class ExtensionRequest(Message, frozen=True, kw_only=True):
    containing_type: Annotated[str, 1] = ""
    extension_number: Annotated[Int32, 2] = 0


class ServerReflectionRequest(Message, frozen=True, kw_only=True):
    host: Annotated[str, 1] = ""
    file_by_filename: Annotated[str | None, 3, OneOf("message_request")] = None
    file_containing_symbol: Annotated[str | None, 4, OneOf("message_request")] = None
    file_containing_extension: Annotated[ExtensionRequest | None, 5, OneOf("message_request")] = None
    all_extension_numbers_of_type: Annotated[str | None, 6, OneOf("message_request")] = None
    list_services: Annotated[str | None, 7, OneOf("message_request")] = None


class FileDescriptorResponse(Message, frozen=True, kw_only=True):
    file_descriptor_proto: Annotated[Sequence[bytes], 1] = ()
    """Each a `FileDescriptorProto` (`descriptors.py`)."""


class ServiceResponse(Message, frozen=True, kw_only=True):
    name: Annotated[str, 1] = ""


class ListServiceResponse(Message, frozen=True, kw_only=True):
    service: Annotated[Sequence[ServiceResponse], 1] = ()


class ErrorResponse(Message, frozen=True, kw_only=True):
    error_code: Annotated[Int32, 1] = 0
    """A gRPC status."""
    error_message: Annotated[str, 2] = ""


class ServerReflectionResponse(Message, frozen=True, kw_only=True):
    valid_host: Annotated[str, 1] = ""
    original_request: Annotated[ServerReflectionRequest, 2] = ServerReflectionRequest()
    file_descriptor_response: Annotated[FileDescriptorResponse | None, 4, OneOf("message_response")] = None
    list_services_response: Annotated[ListServiceResponse | None, 6, OneOf("message_response")] = None
    error_response: Annotated[ErrorResponse | None, 7, OneOf("message_response")] = None


HEALTH: Final = "grpc.health.v1.Health"
REFLECTIONS: Final = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
"""The same service by its two names: new tools ask the first, the official proxy has the second."""

CHECK: Final = Rpc("Check", HealthCheckRequest, HealthCheckResponse, service=HEALTH)
WATCH: Final = Rpc("Watch", HealthCheckRequest, HealthCheckResponse, Kind.SERVER_STREAM, HEALTH)
REFLECT: Final = tuple(
    Rpc("ServerReflectionInfo", ServerReflectionRequest, ServerReflectionResponse, Kind.BIDI, service)
    for service in REFLECTIONS
)
