"""pocketmq.client: asyncio producers and consumers that behave like the official Java ones.

    from pocketmq.client import Producer, PushConsumer

Everything a user needs is imported from here; a name is loaded when it is first used, and only with the files it needs.
The rooms behind this door, bottom up:

    errors.py, clock.py  the exceptions; two clocks
    arguments.py         wrong arguments of public methods
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
    from pocketmq.protocol.bodies.client import ConsumeFromWhere, MessageModel
    from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
    from pocketmq.protocol.bodies.topic_config import TopicConfig
    from pocketmq.protocol.message.message_queue import MessageQueue

    from .admin.client import AdminClient
    from .delivery.listeners import RetryLater, SuspendQueue
    from .errors import (
        AssignmentTimeout,
        CallTimeout,
        ClientClosed,
        ClientError,
        InvalidArgument,
        InvalidSetting,
        MessageNotFound,
        NotOnline,
        NotReachable,
        RequestRefused,
        RequestTimeout,
        RouteNotFound,
        SelectionFailed,
        SendBufferFull,
        SendFailed,
        SendTimedOut,
        UnreadableReply,
        ValidationFailed,
    )
    from .hooks.acl import AclClientRPCHook
    from .hooks.hooks import (
        CheckForbiddenContext,
        CheckForbiddenHook,
        ConsumeMessageContext,
        ConsumeMessageHook,
        EndTransactionContext,
        EndTransactionHook,
        FilterMessageContext,
        FilterMessageHook,
        SendMessageContext,
        SendMessageHook,
    )
    from .hooks.rpc_hooks import RPCHook
    from .hooks.trace_records import TraceContext, decode_traces
    from .producing.producer import Producer
    from .producing.queue_choice import SelectByRandom, select_by_hash
    from .producing.request_reply import Requester
    from .producing.transaction import LocalTransactionState, TransactionProducer, TransactionSendResult
    from .pulling.lite_pull_consumer import LitePullConsumer
    from .pulling.pull_consumer import PullConsumer
    from .push.push_consumer import PushConsumer
    from .settings.allocation import (
        AllocateMessageQueueAveragely,
        AllocateMessageQueueAveragelyByCircle,
        AllocateMessageQueueConsistentHash,
    )
    from .settings.client_settings import ClientSettings
    from .settings.consumer_settings import LitePullConsumerSettings, PushConsumerSettings
    from .settings.producer_settings import ProducerSettings
    from .values.listener_returns import (
        ConsumeConcurrentlyContext,
        ConsumeConcurrentlyStatus,
        ConsumeOrderlyContext,
        ConsumeOrderlyStatus,
    )
    from .values.message import Message, MessageExt
    from .values.results import PullResult, PullStatus, SendResult, SendStatus

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

__all__ = [
    "AclClientRPCHook", "AdminClient", "AllocateMessageQueueAveragely",
    "AllocateMessageQueueAveragelyByCircle", "AllocateMessageQueueConsistentHash", "AssignmentTimeout",
    "CallTimeout", "CheckForbiddenContext", "CheckForbiddenHook", "ClientClosed", "ClientError",
    "ClientSettings", "ConsumeConcurrentlyContext", "ConsumeConcurrentlyStatus", "ConsumeFromWhere",
    "ConsumeMessageContext", "ConsumeMessageHook", "ConsumeOrderlyContext", "ConsumeOrderlyStatus",
    "EndTransactionContext", "EndTransactionHook", "FilterMessageContext", "FilterMessageHook",
    "InvalidArgument", "InvalidSetting", "LitePullConsumer", "LitePullConsumerSettings",
    "LocalTransactionState", "Message", "MessageExt", "MessageModel", "MessageNotFound", "MessageQueue",
    "NotOnline", "NotReachable", "Producer", "ProducerSettings", "PullConsumer", "PullResult",
    "PullStatus", "PushConsumer", "PushConsumerSettings", "RPCHook", "RequestRefused", "RequestTimeout",
    "Requester", "RetryLater", "RouteNotFound", "SelectByRandom", "SelectionFailed", "SendBufferFull",
    "SendFailed", "SendMessageContext", "SendMessageHook", "SendResult", "SendStatus", "SendTimedOut",
    "SubscriptionGroupConfig", "SuspendQueue", "TopicConfig", "TraceContext", "TransactionProducer",
    "TransactionSendResult", "UnreadableReply", "ValidationFailed", "decode_traces", "select_by_hash",
]  # fmt: skip


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
