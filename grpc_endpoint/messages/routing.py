"""Where a topic is, and which queues a consumer reads."""

from collections.abc import Sequence
from typing import Annotated

from ..wire.declare import Message
from .codes import Status
from .resources import Assignment, Endpoints, MessageQueue, Resource


class QueryRouteRequest(Message, frozen=True, kw_only=True):
    topic: Annotated[Resource, 1] = Resource()
    endpoints: Annotated[Endpoints, 2] = Endpoints()


class QueryRouteResponse(Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()
    message_queues: Annotated[Sequence[MessageQueue], 2] = ()


class QueryAssignmentRequest(Message, frozen=True, kw_only=True):
    topic: Annotated[Resource, 1] = Resource()
    group: Annotated[Resource, 2] = Resource()
    endpoints: Annotated[Endpoints, 3] = Endpoints()


class QueryAssignmentResponse(Message, frozen=True, kw_only=True):
    status: Annotated[Status, 1] = Status()
    assignments: Annotated[Sequence[Assignment], 2] = ()
