"""Traces: records as the official client writes them, and what a client sends to the trace topic."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client.delivery.listeners import RetryLater
from pocketmq.client.errors import ClientError
from pocketmq.client.hooks.hooks import Hooks, MessageType
from pocketmq.client.hooks.trace_dispatcher import (
    MAX_WAITING,
    AsyncTraceDispatcher,
    RecallTraceHook,
    trace_messages,
)
from pocketmq.client.hooks.trace_records import (
    TraceBean,
    TraceContext,
    TraceType,
    decode_traces,
    encode_trace,
    trace_keys,
)
from pocketmq.client.producing.producer import Producer, trace_of
from pocketmq.client.pulling.pull_consumer import PullConsumer
from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.client.settings.client_settings import AccessChannel, ClientSettings
from pocketmq.client.settings.producer_settings import ProducerSettings
from pocketmq.client.values.message import Message, MessageExt
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.requests.send import RecallMessage
from pocketmq.protocol.wire.command import Command

from client_vectors import feature_vectors
from client_waits import Seen, make_node
from waiting import until


def context(kind: TraceType, *beans: TraceBean, **changes: Any) -> TraceContext:
    """As Features.java makes it."""
    fields: dict[str, Any] = {
        "timestamp_ms": 1700000000000,
        "region_id": "DefaultRegion",
        "group_name": "group",
        "cost_ms": 12,
        "request_id": "REQUEST",
        "context_code": 4,
        "access_channel": AccessChannel.LOCAL,
        **changes,
    }
    return TraceContext(trace_type=kind, beans=list(beans), **fields)


def bean(msg_id: str, tags: str | None, keys: str | None) -> TraceBean:
    return TraceBean(
        topic="T",
        msg_id=msg_id,
        tags=tags,
        keys=keys,
        store_host="127.0.0.1:10911",
        body_length=7,
        msg_type=MessageType.DELAY_MSG,
        offset_msg_id="OFFSET",
        retry_times=2,
        transaction_id="TRANSACTION",
        transaction_state="COMMIT_MESSAGE",
        from_transaction_check=True,
    )


def recorded(name: str) -> TraceContext:
    """The context behind a row of the vectors."""
    kind, _, which = name.partition(" ")
    if which == "two":
        return context(TraceType(kind), bean("A", None, None), bean("B", "t", "k"))
    if which == "cloud":
        return context(TraceType(kind), bean("A", "tag", "k1 k2"), access_channel=AccessChannel.CLOUD)
    if which == "failed":
        return context(TraceType(kind), bean("A", None, None), is_success=False)
    return context(TraceType(kind), bean("A", "tag", "k1 k2"))


@pytest.mark.parametrize(("given", "expected"), feature_vectors("trace"))
def test_records_and_keys_are_those_of_the_official_client(given: list[str], expected: str) -> None:
    name, keys = given
    made = recorded(name)
    assert encode_trace(made) == expected
    assert " ".join(sorted(trace_keys(made))) == keys


@pytest.mark.parametrize("expected", [text for _, text in feature_vectors("trace")])
def test_what_is_read_is_what_was_written(expected: str) -> None:
    assert "".join(map(encode_trace, decode_traces(expected))) == expected


def test_malformed_traces_are_skipped_or_refused() -> None:
    assert decode_traces("") == decode_traces("Unknown\x01x\x02") == []
    old = "Pub\x011\x01r\x01g\x01T\x01A\x01t\x01k\x01h\x017\x0112\x010\x01true\x02"
    assert decode_traces(old)[0].is_success
    for damaged in ("Pub\x01x\x02", "SubBefore\x02", "SubAfter\x01a\x01b\x01c\x02", "Recall\x011\x02"):
        with pytest.raises(ClientError, match="not a trace record"):
            decode_traces(damaged)


@given(st.text("SubBeforeAtPc01\x01\x02"))
def test_no_text_raises_another_error_than_a_refusal(text: str) -> None:
    try:
        decode_traces(f"Pub\x01{text}\x02SubAfter\x01{text}\x02{text}")
    except ClientError:
        pass


async def traces(namesrv_addr: str, topic: str) -> tuple[list[TraceContext], list[dict[str, str]]]:
    """Every record of a trace topic, and the properties of its messages."""
    contexts: list[TraceContext] = []
    properties = []
    async with PullConsumer("reader", namesrv_addr=namesrv_addr) as puller:
        for queue in await puller.queues(topic):
            offset = await puller.min_offset(queue)
            while offset < await puller.max_offset(queue):
                result = await puller.pull(queue, offset)
                offset = result.next_offset
                for record in result.messages:
                    contexts += decode_traces(bytes(record.body).decode())
                    properties.append(decode_properties(record.record.properties))
    return contexts, properties


@pytest.mark.slow
async def test_a_message_can_be_followed_from_its_producer_to_its_consumers(namesrv_addr: str) -> None:
    seen = Seen()

    async def listener(message: MessageExt) -> None:
        await seen(message)
        if message.reconsume_times == 0 and message.body == b"again":
            raise RetryLater(delay_level=1)

    options: dict[str, Any] = {"namesrv_addr": namesrv_addr, "enable_trace": True, "trace_topic": "Traces"}
    async with (
        Producer("p", **options) as producer,
        PushConsumer("g", listener, **options, subscription={"T": "*"}, start="first") as consumer,
    ):
        sent = await producer.send("T", b"again", tags="a", keys="k1 k2")
        future = await producer.send_nowait("T", b"plain")
        await producer.send_oneway("T", b"oneway")  # its outcome is unknown: no trace
        consumer.subscribe("T")
        await until(lambda: seen.bodies.count(b"again") == 2 and len(seen.bodies) == 4, timeout=30)
    contexts, properties = await traces(namesrv_addr, "Traces")
    of_kind = {kind: [one for one in contexts if one.trace_type is kind] for kind in TraceType}
    assert {one.beans[0].msg_id for one in of_kind[TraceType.PUB]} == {sent.message_id, future.message_id}
    first = next(one for one in of_kind[TraceType.PUB] if one.beans[0].msg_id == sent.message_id)
    assert (first.group_name, first.region_id, first.is_success) == ("p", "DefaultRegion", True)
    assert (first.beans[0].topic, first.beans[0].tags, first.beans[0].keys) == ("T", "a", "k1 k2")
    assert first.beans[0].offset_msg_id == sent.offset_message_id
    before, after = of_kind[TraceType.SUB_BEFORE], of_kind[TraceType.SUB_AFTER]
    assert len(before) == len(after) == 4
    assert {one.request_id for one in before} == {one.request_id for one in after}
    tries = [one for one in after if one.beans[0].msg_id == sent.message_id]
    assert sorted((one.is_success, one.context_code) for one in tries) == [(False, 4), (True, 0)]
    assert {one.beans[0].retry_times for one in before if one.beans[0].msg_id == sent.message_id} == {0, 1}
    keys = " ".join(one["KEYS"] for one in properties).split()
    assert {sent.message_id, "k1", "k2"} <= set(keys)


async def test_a_trace_that_cannot_be_sent_delays_nothing(tmp_path: Path) -> None:
    node = make_node(tmp_path / "store")
    await node.start()
    async with Producer(
        "p" * 110, namesrv_addr=node.namesrv_address, enable_trace=True
    ) as producer:  # the trace's own group is too long
        assert (await producer.send("T", b"x")).message_id
    await node.stop()


async def test_an_unexpected_error_does_not_end_the_trace(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Message] = []

    class Sender:
        async def start(self) -> None: ...

        async def shutdown(self) -> None: ...

        async def send(self, message: Message, *, timeout_ms: int) -> None:
            sent.append(message)
            if len(sent) == 1:
                raise RuntimeError("a bug")

    dispatcher = AsyncTraceDispatcher(
        "g",
        "PRODUCE",
        ClientSettings(namesrv_addr="127.0.0.1:1", trace_msg_batch_num=1),
        make_sender=lambda group, *, settings, hooks: Sender(),
    )
    await dispatcher.start()
    for _ in range(3):
        assert dispatcher.append(recorded("Pub"))
    await until(lambda: len(sent) == 3)
    await dispatcher.shutdown()
    assert caplog.text.count("could not be sent") == 1


async def test_records_beyond_the_limit_are_dropped_and_counted() -> None:
    dispatcher = trace_of("g", "PRODUCE", ClientSettings(namesrv_addr="127.0.0.1:1"), ())
    made = recorded("Pub")
    assert all(dispatcher.append(made) for _ in range(MAX_WAITING))
    assert not dispatcher.append(made)
    assert dispatcher.dropped == 1


def test_a_trace_message_never_grows_much_beyond_its_limit() -> None:
    long = context(TraceType.PUB, bean("A", None, "k" * 50_000))
    messages = trace_messages("Traces", [long] * 5)
    assert [len(decode_traces(message.body.decode())) for message in messages] == [3, 2]
    assert {message.topic for message in messages} == {"Traces"}


def test_the_trace_sends_with_the_clients_own_connection_settings() -> None:
    settings = ProducerSettings(
        namesrv_addr="a:1",
        use_tls=True,
        namespace_v2="N",
        namespace="old",
        vip_channel_enabled=True,
        auto_batch=True,
    )
    dispatcher = trace_of("g", "PRODUCE", settings, ())
    made = dispatcher._sender_settings()
    assert (made.use_tls, made.namespace_v2, made.namespace, made.vip_channel_enabled) == (
        True,
        "N",
        "",
        False,
    )
    assert (made.send_msg_timeout, made.max_message_size, made.auto_batch) == (5_000, 128_000, False)
    assert made.instance_name == "PID_CLIENT_INNER_TRACE_PRODUCER_a:1"


def test_recalls_are_traced_if_enabled() -> None:
    kept: list[TraceContext] = []
    hooks = Hooks()
    settings = ProducerSettings(namesrv_addr="a:1", recall_trace_enable=True)
    trace_of("g", "PRODUCE", settings, ()).attach(hooks)
    assert len(hooks.rpc) == 1
    hook = RecallTraceHook(lambda made: kept.append(made) or True)  # type: ignore[func-returns-value]
    ((handle,), _) = feature_vectors("handle")[0]
    request = RecallMessage(producer_group="N%g", topic="N%T", recall_handle=handle or "")
    hook.after_response("", request, Command(0, fields={"MSG_REGION": "DefaultRegion"}))
    hook.after_response("", request, Command(13, fields={"MSG_REGION": "DefaultRegion"}))
    hook.after_response("", request, Command(0))
    hook.after_response(
        "", RecallMessage(topic="T", recall_handle="?"), Command(0, fields={"MSG_REGION": "DefaultRegion"})
    )
    assert [(one.group_name, one.beans[0].topic, one.beans[0].msg_id, one.is_success) for one in kept] == [
        ("g", "T", "7F0000010A", True),
        ("g", "T", "7F0000010A", False),
    ]


async def test_shutdown_sends_waiting_traces_and_leaves_no_task(namesrv_addr: str) -> None:
    before = asyncio.all_tasks()
    async with Producer(
        "p", namesrv_addr=namesrv_addr, enable_trace=True, trace_msg_batch_num=20
    ) as producer:
        for _ in range(30):
            await producer.send("T", b"x")
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    contexts, _ = await traces(namesrv_addr, "RMQ_SYS_TRACE_TOPIC")
    assert len(contexts) == 30
