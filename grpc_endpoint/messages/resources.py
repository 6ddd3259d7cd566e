"""What requests and replies are about: topics and groups (`Resource`), addresses, brokers, queues, subscriptions."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

from ..wire.declare import Int32, Message
from .enumerations import AddressScheme, FilterType, MessageType, Permission


class Resource(Message, frozen=True, kw_only=True):
    """A topic or a group by name."""

    recurs: ClassVar[bool] = True

    resource_namespace: Annotated[str, 1] = ""
    name: Annotated[str, 2] = ""


class FilterExpression(Message, frozen=True, kw_only=True):
    recurs: ClassVar[bool] = True

    type: Annotated[FilterType, 1] = FilterType.FILTER_TYPE_UNSPECIFIED
    expression: Annotated[str, 2] = ""


class SubscriptionEntry(Message, frozen=True, kw_only=True):
    topic: Annotated[Resource, 1] = Resource()
    expression: Annotated[FilterExpression, 2] = FilterExpression()


class Address(Message, frozen=True, kw_only=True):
    host: Annotated[str, 1] = ""
    port: Annotated[Int32, 2] = 0


class Endpoints(Message, frozen=True, kw_only=True):
    scheme: Annotated[AddressScheme, 1] = AddressScheme.ADDRESS_SCHEME_UNSPECIFIED
    addresses: Annotated[Sequence[Address], 2] = ()


class Broker(Message, frozen=True, kw_only=True):
    name: Annotated[str, 1] = ""
    id: Annotated[Int32, 2] = 0
    """0 is the master."""
    endpoints: Annotated[Endpoints, 3] = Endpoints()


class MessageQueue(Message, frozen=True, kw_only=True):
    recurs: ClassVar[bool] = True

    topic: Annotated[Resource, 1] = Resource()
    id: Annotated[Int32, 2] = 0
    """-1 is any queue of the broker."""
    permission: Annotated[Permission, 3] = Permission.PERMISSION_UNSPECIFIED
    broker: Annotated[Broker, 4] = Broker()
    accept_message_types: Annotated[Sequence[MessageType], 5] = ()


class Assignment(Message, frozen=True, kw_only=True):
    message_queue: Annotated[MessageQueue, 1] = MessageQueue()
