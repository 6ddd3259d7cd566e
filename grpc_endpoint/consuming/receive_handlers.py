"""ReceiveMessage: the next messages for a member of a group, at once or after a wait.

The checks are those of the official `ReceiveMessageActivity`, in its order. Every answer but a refusal of the guard
ends with the time of the delivery. The pop itself is `receiving.py`. A receive that arrives before the settings of its
client waits for them; only a strict endpoint refuses it at once.
"""

from typing import Final

from pocketmq.protocol.bodies.client import ExpressionError
from pocketmq.protocol.message import flags
from pocketmq.protocol.requests.pop import PopMessage

from ..calls.handler import ANSWERS_LATER, PROXY, Deferred, RpcRefused
from ..calls.rpc_call import RpcCall
from ..clients.registration import subscription_of
from ..conversion.names import checked_group, checked_topic
from ..messages import Code, ReceiveMessageRequest, Settings, ms_of
from ..producing.routes import topic_not_found
from .consuming import Consuming
from .receiving import Receiving, end_stream

MOST_MESSAGES: Final = 32
"""In one receive; a larger batch size counts as this."""
INIT_AT_NEWEST: Final = 1
"""Where a group starts that has no offset: at the newest message of a queue, unless all of it is in memory."""
EARLY_SECONDS: Final = 1
"""How long a receive waits for the settings of its client."""
FIRST_WITH_POLLING_CODE: Final = "5.0.3"
"""Clients before this version do not know the code ILLEGAL_POLLING_TIME."""
_UNKNOWN_CLIENT: Final = "cannot find client settings for this client"
_TOO_LATE: Final = "The deadline time remaining is not enough for polling, please check network condition"


def receive_message(consuming: Consuming, request: ReceiveMessageRequest, call: RpcCall) -> Deferred:
    """Deliver messages, which stay hidden from the group until they are acknowledged or their time is over."""
    clients = consuming.clients
    clients.check(call, request)
    seconds = 0 if consuming.config.grpc_strict else EARLY_SECONDS
    clients.when_settings_known(call, seconds, lambda settings: _receive(consuming, request, call, settings))
    return ANSWERS_LATER


def _receive(
    consuming: Consuming, request: ReceiveMessageRequest, call: RpcCall, settings: Settings | None
) -> None:
    try:
        if settings is None:
            raise RpcRefused(Code.UNRECOGNIZED_CLIENT_TYPE, _UNKNOWN_CLIENT)
        polling_ms = _polling_ms(consuming, request, call, settings)
        topic = checked_topic(request.message_queue.topic, consuming.broker.topics)
        group = checked_group(request.group)
        invisible_ms = _invisible_ms(consuming, request)
        subscription = subscription_of(topic, request.filter_expression)
        check_readable(consuming, topic)
    except (RpcRefused, ExpressionError) as error:
        if isinstance(error, ExpressionError):
            error = RpcRefused(Code.ILLEGAL_FILTER_EXPRESSION, str(error))
        end_stream(call, error.status, consuming.broker.clock.now_ms())
        return
    pop = PopMessage(
        consumer_group=group,
        topic=topic,
        queue_id=-1,
        max_msg_nums=max(min(request.batch_size, MOST_MESSAGES), 0),
        invisible_time=invisible_ms,
        poll_time=polling_ms,
        init_mode=INIT_AT_NEWEST,
        exp_type=subscription.expression_type,
        exp=subscription.sub_string,
        order=settings.subscription.fifo,
        attempt_id=request.attempt_id if request.HasField("attempt_id") else None,
    )
    is_renewed = request.auto_renew and consuming.config.enable_proxy_auto_renew
    policy = settings.backoff_policy if settings.HasField("backoff_policy") else None
    max_attempts = None if policy is None else policy.max_attempts
    Receiving(consuming, call, pop, subscription, max_attempts, is_renewed).begin()


def _polling_ms(
    consuming: Consuming, request: ReceiveMessageRequest, call: RpcCall, settings: Settings
) -> int:
    """How long the receive may wait. Never longer than the client does."""
    config = consuming.config
    shortest = config.grpc_client_consumer_min_long_polling_timeout_millis
    longest = config.grpc_client_consumer_max_long_polling_timeout_millis
    remaining_seconds = call.remaining_seconds
    remaining_ms = None if remaining_seconds is None else int(remaining_seconds * 1000)
    if request.HasField("long_polling_timeout"):
        polling_ms = ms_of(request.long_polling_timeout)
    elif remaining_ms is None:
        polling_ms = longest
    else:
        polling_ms = remaining_ms - ms_of(settings.request_timeout) // 2
    polling_ms = min(max(polling_ms, shortest), longest)
    if remaining_ms is None or polling_ms <= remaining_ms:
        return polling_ms
    if remaining_ms >= shortest:
        return remaining_ms
    version = call.metadata.get("x-mq-client-version")
    knows_code = version is not None and version >= FIRST_WITH_POLLING_CODE
    raise RpcRefused(Code.ILLEGAL_POLLING_TIME if knows_code else Code.BAD_REQUEST, _TOO_LATE)


def _invisible_ms(consuming: Consuming, request: ReceiveMessageRequest) -> int:
    config = consuming.config
    if request.auto_renew and config.enable_proxy_auto_renew:
        return config.default_invisible_time_mills
    invisible_ms = ms_of(request.invisible_duration)
    check_invisible_time(
        invisible_ms, config.min_invisible_time_mills_for_recv, config.max_invisible_time_mills
    )
    return invisible_ms


def check_invisible_time(invisible_ms: int, least_ms: int, most_ms: int) -> None:
    """Raises `RpcRefused` with ILLEGAL_INVISIBLE_TIME. A limit `most_ms` of 0 is none."""
    if invisible_ms < least_ms:
        text = f"the invisibleTime is too small. min is {least_ms}"
        raise RpcRefused(Code.ILLEGAL_INVISIBLE_TIME, text)
    if 0 < most_ms < invisible_ms:
        text = f"the invisibleTime is too large. max is {most_ms}"
        raise RpcRefused(Code.ILLEGAL_INVISIBLE_TIME, text)


def check_readable(consuming: Consuming, topic: str) -> None:
    """Raises `RpcRefused` if this broker does not have the topic, or no queue of it can be read. A slave keeps no
    account of what it delivers: its master would deliver the same messages once more."""
    if consuming.broker.config.is_slave:
        raise RpcRefused(Code.FORBIDDEN, f"{PROXY}a slave delivers no messages: receive from its master")
    config = consuming.broker.topics.find(topic)
    if config is None:
        raise topic_not_found(topic)
    if config.read_queue_nums <= 0 or not config.perm & flags.PERM_READ:
        raise RpcRefused(Code.FORBIDDEN, f"{PROXY}no readable queue")
