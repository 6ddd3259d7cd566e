"""Health and reflection: the two general services that tools ask (grpcurl, Kubernetes), and their messages."""

from enum import IntEnum
from typing import Final

from . import proto
from .service import Kind, Rpc


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
