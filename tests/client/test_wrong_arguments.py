"""Whatever a user gives a public method, the answer is a result or a `ClientError` in words: nothing raw from inside.

Each parameter of each method gets each of `WRONG`, beside good values of the others.
"""

import asyncio
import inspect
import math
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, get_type_hints

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import (
    AclClientRPCHook,
    AdminClient,
    AllocateMessageQueueConsistentHash,
    ClientError,
    LitePullConsumer,
    LocalTransactionState,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    PullConsumer,
    PushConsumer,
    Requester,
    SubscriptionGroupConfig,
    TopicConfig,
    TransactionProducer,
    decode_traces,
)
from pocketmq.client.values.validators import check_message
from pocketmq.protocol.bodies.security import AclInfo, UserInfo

from client_waits import send

WRONG: list[Any] = [
    *(None, True, 5, -1, 1.5, math.nan, "", "text", "a\nb\x01", b"x", [], [None], {}, {"a": None}, {None: 1}),
    *(object(), print, timedelta(-1), MessageQueue(5, None, "x")),  # type: ignore[arg-type]
]
QUEUE = MessageQueue("T", "broker-a", 0)
LEFT_OUT = {"start", "shutdown", "run", "wait_assigned"}
LAST = ("delete", "update_broker_config", "set_topic_perm")
"""What changes the server is tried last: other methods find less then."""
CALL_SECONDS = 0.3


def commit(*_: object) -> LocalTransactionState:
    return LocalTransactionState.COMMIT_MESSAGE


CLIENTS: dict[str, Callable[..., Any]] = {
    "Producer": lambda address: Producer("p", namesrv_addr=address),
    "Requester": lambda address: Requester("q", namesrv_addr=address),
    "TransactionProducer": lambda address: TransactionProducer("t", commit, namesrv_addr=address),
    "PushConsumer": lambda address: PushConsumer("g", subscription={"T": "*"}, namesrv_addr=address),
    "LitePullConsumer": lambda address: LitePullConsumer("l", namesrv_addr=address),
    "PullConsumer": lambda address: PullConsumer("r", namesrv_addr=address),
    "AdminClient": lambda address: AdminClient(namesrv_addr=address),
}


def good_values(broker: str, message: MessageExt) -> dict[str, Any]:
    """By the name of a parameter."""
    return {
        **dict.fromkeys(("topic", "src_topic", "trace_topic", "route_topic"), "T"),
        **dict.fromkeys(("group", "src_group", "dest_group", "username", "subject", "order_conf"), "g"),
        **dict.fromkeys(("message_id", "client_id", "key", "stats_name", "stats_key", "recall_handle"), "id"),
        **dict.fromkeys(("offset", "queue_id", "begin", "begin_ms", "timestamp_ms", "perm", "code"), 0),
        **dict.fromkeys(("timeout_ms", "wait_ms", "max_count", "end"), 1),
        "body": b"x",
        "queue": QUEUE,
        "queues": [QUEUE],
        "execute": commit,
        "listener": commit,
        "message": message,
        "question": message,
        "messages": [Message("T", b"x")],
        "mode": "PULL",
        "address": broker,
        "cluster": "DefaultCluster",
        "offsets": {QUEUE: 0},
        "settings": {},
        "user": UserInfo("u", "p"),
        "acl": AclInfo("User:u", []),
    }


def cases(function: Callable[..., Any], good: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The keyword arguments of every call to make."""
    parameters = inspect.signature(function).parameters.values()
    needed = {
        one.name: good[one.name]
        for one in parameters
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    }
    names = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        (keywords,) = get_type_hints(function)[
            next(one.name for one in parameters if one.kind is one.VAR_KEYWORD)
        ].__args__
        names += [*get_type_hints(keywords), "unknown"]
        if "cluster" in names:
            needed["cluster"] = good["cluster"]
    if "timeout_ms" in names:
        needed.setdefault("timeout_ms", good["timeout_ms"])
    for name in names:
        for wrong in WRONG:
            yield needed | {name: wrong}


async def raised(function: Callable[..., Any], keywords: dict[str, Any]) -> Exception | None:
    try:
        async with asyncio.timeout(CALL_SECONDS):
            result = function(**keywords)
            if inspect.isasyncgen(result):
                async for _ in result:
                    break
            elif inspect.isawaitable(result):
                await result
    except (ClientError, TimeoutError):
        return None
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("kind", CLIENTS)
async def test_a_wrong_argument_is_refused_in_words(node: Node, kind: str) -> None:
    await send(node.namesrv_address, "T", 1)
    async with PullConsumer("reader", namesrv_addr=node.namesrv_address) as reader:
        pulled = [await reader.pull(queue, 0) for queue in await reader.queues("T")]
        good = good_values(
            await reader.broker_address(QUEUE), next(one.messages[0] for one in pulled if one.messages)
        )
    raw = set()
    async with CLIENTS[kind](node.namesrv_address) as client:
        methods = [
            name
            for name, member in inspect.getmembers(type(client), inspect.isfunction)
            if name[0] != "_" and name not in LEFT_OUT
        ]
        for name in sorted(methods, key=lambda name: name.startswith(LAST)):
            if name in ("update_topic", "update_group"):
                good["config"] = (
                    TopicConfig(topic_name="T")
                    if name == "update_topic"
                    else SubscriptionGroupConfig(group_name="g")
                )
            for keywords in cases(getattr(client, name), good):
                if error := await raised(getattr(client, name), keywords):
                    raw.add(f"{name}({keywords}): {error!r}")
    assert sorted(raw) == []


@pytest.mark.parametrize(
    ("make", "keywords"),
    [
        (Message, {"topic": "T", "body": b"x"}),
        (AclClientRPCHook, {"access_key": "a", "secret_key": "b"}),
        (AllocateMessageQueueConsistentHash, {}),
        (decode_traces, {"text": ""}),
        (Producer, {"group": "p"}),
        (TransactionProducer, {"group": "p", "checker": commit}),
        (PushConsumer, {"group": "g"}),
        (LitePullConsumer, {"group": "g"}),
        (PullConsumer, {"group": "g"}),
        (AdminClient, {}),
    ],
)
def test_nothing_is_made_of_wrong_arguments(make: Callable[..., Any], keywords: dict[str, Any]) -> None:
    parameters = inspect.signature(make).parameters.values()
    raw = set()
    for name in (one.name for one in parameters):
        for wrong in WRONG:
            try:
                make(**keywords | {name: wrong})
            except ClientError:
                pass
            except Exception as error:
                raw.add(f"{name}={wrong!r}: {error!r}")
    assert sorted(raw) == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PushConsumer("g", offset_store=5), "offset_store must be an OffsetStore"),
        (lambda: PushConsumer("g", commit, batch_listener=commit), "has one listener"),
        (lambda: PushConsumer("g", commit, consume_message_batch_max_size=3), "batch_listener"),
        (lambda: PushConsumer("g", lambda: None), "must take the message"),
        (lambda: PushConsumer("g", start="first", consume_timestamp="x"), "give start or consume_timestamp"),
        (lambda: AdminClient(timeout_ms=0), "at least 1"),
        (lambda: AdminClient(timeout_ms=math.nan), "must be milliseconds"),
        *(
            (lambda make=make: make(["g"]), "group must be text, not ")
            for make in (Producer, Requester, PushConsumer, LitePullConsumer, PullConsumer)
        ),
        (lambda: LitePullConsumer("g").subscribe(5), "topic must be text, not "),
        (lambda: check_message(["T"], b"x", max_message_size=10), "a topic must be text, not "),
    ],
)
def test_what_would_fail_later_is_refused_when_it_is_made(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ClientError, match=words):
        make()
