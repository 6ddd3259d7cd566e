"""pocketmq.client: asyncio producers and consumers that behave like the official Java ones.

    from pocketmq.client import Producer, PushConsumer

Everything a user needs is imported from here; a name is loaded when it is first used, and only with the files it needs.
The rooms behind this door, bottom up:

    errors.py, clock.py  the exceptions; two clocks
    tasks.py             background tasks, kept and ended
    values/              what a user gives and gets: messages, results, names
    settings/            every setting, its default, its check
    hooks/               callbacks, request signatures, message traces
    connections/         TCP connections, TLS, name servers
    access.py            keys, TLS and addresses of a cluster as one value
    access_options.py    the same as options of a command line
    instance/            what the clients of one client id share
    offsets/             how far a group has consumed
    producing/           sending: single messages, batches, transactions, request and reply
    rebalancing/         which queues are ours, where to begin, what they hold
    delivery/            messages to a listener, and what its answer does
    pulling/             consumers that ask for messages
    push/                consumers whose listener is called with messages
    admin/               looking into a cluster and changing it
"""

TYPE_CHECKING = False  # as in `typing`, which costs more to import than all of this file
if TYPE_CHECKING:
    from pocketmq.protocol.bodies.client import ConsumeFromWhere as ConsumeFromWhere
    from pocketmq.protocol.bodies.client import MessageModel as MessageModel
    from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig as SubscriptionGroupConfig
    from pocketmq.protocol.bodies.topic_config import TopicConfig as TopicConfig
    from pocketmq.protocol.message.message_queue import MessageQueue as MessageQueue

    from .admin.client import AdminClient as AdminClient
    from .delivery.listeners import RetryLater as RetryLater
    from .delivery.listeners import SuspendQueue as SuspendQueue
    from .errors import AssignmentTimeout as AssignmentTimeout
    from .errors import CallTimeout as CallTimeout
    from .errors import ClientClosed as ClientClosed
    from .errors import ClientError as ClientError
    from .errors import InvalidArgument as InvalidArgument
    from .errors import InvalidSetting as InvalidSetting
    from .errors import MessageNotFound as MessageNotFound
    from .errors import NotOnline as NotOnline
    from .errors import NotReachable as NotReachable
    from .errors import RequestRefused as RequestRefused
    from .errors import RequestTimeout as RequestTimeout
    from .errors import RouteNotFound as RouteNotFound
    from .errors import SelectionFailed as SelectionFailed
    from .errors import SendBufferFull as SendBufferFull
    from .errors import SendFailed as SendFailed
    from .errors import SendTimedOut as SendTimedOut
    from .errors import UnreadableReply as UnreadableReply
    from .errors import ValidationFailed as ValidationFailed
    from .hooks.acl import AclClientRPCHook as AclClientRPCHook
    from .hooks.hooks import CheckForbiddenContext as CheckForbiddenContext
    from .hooks.hooks import CheckForbiddenHook as CheckForbiddenHook
    from .hooks.hooks import ConsumeMessageContext as ConsumeMessageContext
    from .hooks.hooks import ConsumeMessageHook as ConsumeMessageHook
    from .hooks.hooks import EndTransactionContext as EndTransactionContext
    from .hooks.hooks import EndTransactionHook as EndTransactionHook
    from .hooks.hooks import FilterMessageContext as FilterMessageContext
    from .hooks.hooks import FilterMessageHook as FilterMessageHook
    from .hooks.hooks import SendMessageContext as SendMessageContext
    from .hooks.hooks import SendMessageHook as SendMessageHook
    from .hooks.rpc_hooks import RPCHook as RPCHook
    from .hooks.trace_records import TraceContext as TraceContext
    from .hooks.trace_records import decode_traces as decode_traces
    from .producing.producer import Producer as Producer
    from .producing.queue_choice import SelectByRandom as SelectByRandom
    from .producing.queue_choice import select_by_hash as select_by_hash
    from .producing.request_reply import Requester as Requester
    from .producing.transaction import LocalTransactionState as LocalTransactionState
    from .producing.transaction import TransactionProducer as TransactionProducer
    from .producing.transaction import TransactionSendResult as TransactionSendResult
    from .pulling.lite_pull_consumer import LitePullConsumer as LitePullConsumer
    from .pulling.pull_consumer import PullConsumer as PullConsumer
    from .push.push_consumer import PushConsumer as PushConsumer
    from .settings.allocation import AllocateMessageQueueAveragely as AllocateMessageQueueAveragely
    from .settings.allocation import (
        AllocateMessageQueueAveragelyByCircle as AllocateMessageQueueAveragelyByCircle,
    )
    from .settings.allocation import AllocateMessageQueueConsistentHash as AllocateMessageQueueConsistentHash
    from .settings.client_settings import ClientSettings as ClientSettings
    from .settings.consumer_settings import LitePullConsumerSettings as LitePullConsumerSettings
    from .settings.consumer_settings import PushConsumerSettings as PushConsumerSettings
    from .settings.producer_settings import ProducerSettings as ProducerSettings
    from .values.listener_returns import ConsumeConcurrentlyContext as ConsumeConcurrentlyContext
    from .values.listener_returns import ConsumeConcurrentlyStatus as ConsumeConcurrentlyStatus
    from .values.listener_returns import ConsumeOrderlyContext as ConsumeOrderlyContext
    from .values.listener_returns import ConsumeOrderlyStatus as ConsumeOrderlyStatus
    from .values.message import Message as Message
    from .values.message import MessageExt as MessageExt
    from .values.results import PullResult as PullResult
    from .values.results import PullStatus as PullStatus
    from .values.results import SendResult as SendResult
    from .values.results import SendStatus as SendStatus

_NAMES = {
    "admin.client": "AdminClient",
    "delivery.listeners": "RetryLater SuspendQueue",
    "errors": "AssignmentTimeout CallTimeout ClientClosed ClientError InvalidArgument InvalidSetting "
    "MessageNotFound NotOnline NotReachable RequestRefused RequestTimeout RouteNotFound SelectionFailed "
    "SendBufferFull SendFailed SendTimedOut UnreadableReply ValidationFailed",
    "hooks.acl": "AclClientRPCHook",
    "hooks.hooks": "CheckForbiddenContext CheckForbiddenHook ConsumeMessageContext ConsumeMessageHook "
    "EndTransactionContext EndTransactionHook FilterMessageContext FilterMessageHook "
    "SendMessageContext SendMessageHook",
    "hooks.rpc_hooks": "RPCHook",
    "hooks.trace_records": "TraceContext decode_traces",
    "producing.producer": "Producer",
    "producing.queue_choice": "SelectByRandom select_by_hash",
    "producing.request_reply": "Requester",
    "producing.transaction": "LocalTransactionState TransactionProducer TransactionSendResult",
    "pulling.lite_pull_consumer": "LitePullConsumer",
    "pulling.pull_consumer": "PullConsumer",
    "push.push_consumer": "PushConsumer",
    "settings.allocation": "AllocateMessageQueueAveragely AllocateMessageQueueAveragelyByCircle "
    "AllocateMessageQueueConsistentHash",
    "settings.client_settings": "ClientSettings",
    "settings.consumer_settings": "LitePullConsumerSettings PushConsumerSettings",
    "settings.producer_settings": "ProducerSettings",
    "values.listener_returns": "ConsumeConcurrentlyContext ConsumeConcurrentlyStatus ConsumeOrderlyContext "
    "ConsumeOrderlyStatus",
    "values.message": "Message MessageExt",
    "values.results": "PullResult PullStatus SendResult SendStatus",
    "pocketmq.protocol.bodies.client": "ConsumeFromWhere MessageModel",
    "pocketmq.protocol.bodies.group_config": "SubscriptionGroupConfig",
    "pocketmq.protocol.bodies.topic_config": "TopicConfig",
    "pocketmq.protocol.message.message_queue": "MessageQueue",
}
"""Each file of this package, or module of another, and the names that come from it."""
_FILE_OF = {name: file for file, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_FILE_OF)  # one table says every name once


def __getattr__(name: str) -> object:
    """Load a name when it is first used (PEP 562)."""
    file = _FILE_OF.get(name)
    if file is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(
        import_module(file if file.startswith("pocketmq.") else f"{__name__}.{file}"), name
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
