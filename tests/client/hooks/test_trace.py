"""Traces: records as the official client writes them, and what a client sends to the trace topic."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.node import Node
from pocketmq.client import ClientError, Producer, ProducerSettings, PushConsumer, RetryLater
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
from pocketmq.client.producing.transaction import LocalTransactionState, TransactionProducer
from pocketmq.client.settings.client_settings import AccessChannel, ClientSettings
from pocketmq.client.values.message import Message, MessageExt
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.requests.send import RecallMessage
from pocketmq.protocol.wire.command import Command

from client_vectors import FOLDER, feature_vectors
from client_waits import Seen, stored
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


async def traces(namesrv_addr: str, topic: str) -> tuple[list[str], list[dict[str, str]]]:
    """The text of every message of a trace topic, and its properties."""
    records = await stored(namesrv_addr, topic)
    return (
        [bytes(record.body).decode() for record in records],
        [decode_properties(record.properties) for record in records],
    )


COST = {"Pub": 10, "SubAfter": 3}
"""The place of a measured time in a record of that kind."""
MASKS = ((r"\d{13}", "TIME"), (r"[0-9A-F]{32}", "ID"), (r"127\..*:\d+", "HOST"))


def masked(record: str) -> str:
    fields = record.split("\x01")
    for pattern, word in MASKS:
        fields = [re.sub(rf"\A{pattern}\Z", word, field) for field in fields]
    if (place := COST.get(fields[0])) is not None:
        assert fields[place].isdigit()
        fields[place] = "COST"
    return "|".join(fields)


@pytest.mark.slow
async def test_an_exchange_leaves_the_records_that_the_official_client_leaves(namesrv_addr: str) -> None:
    """What `vectors/TracedExchange.java` does: a plain, a tagged and a refused message, and two transactions."""
    seen = Seen()

    async def listener(message: MessageExt) -> None:
        await seen(message)
        if message.reconsume_times == 0 and message.body == b"again":
            raise RetryLater(delay_level=1)

    options: dict[str, Any] = {"namesrv_addr": namesrv_addr, "enable_trace": True, "trace_topic": "Traces"}
    async with (
        Producer("p", **options) as producer,
        TransactionProducer("t", lambda message: LocalTransactionState.UNKNOW, **options) as transactions,
        PushConsumer("g", listener, **options, subscription={"T": "*"}, start="first") as consumer,
    ):
        await producer.send("T", b"first")
        await producer.send_oneway("Other", b"x")  # its outcome is unknown: no trace
        await producer.send_nowait("T", b"plain")
        tagged = await producer.send("T", b"tagged", tags="A", keys="k1 k2")
        await producer.send("T", b"again", keys="k3")
        commit, drop = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.ROLLBACK_MESSAGE
        await transactions.send_in_transaction("T", b"commit", lambda *_: commit, keys="k4")
        await transactions.send_in_transaction("T", b"drop", lambda *_: drop)
        consumer.subscribe("T")
        await until(lambda: seen.bodies.count(b"again") == 2 and len(seen.bodies) == 6, timeout=30)
    texts, properties = await traces(namesrv_addr, "Traces")
    records = [record for text in texts for record in text.split("\x02") if record]
    official = (FOLDER / "traced-exchange-5.5.0.txt").read_text(encoding="utf-8").splitlines()
    assert sorted(map(masked, records)) == official
    contexts = decode_traces("".join(texts))
    [about] = [
        one.beans[0] for one in contexts if one.trace_type is TraceType.PUB and one.beans[0].tags == "A"
    ]
    assert (about.msg_id, about.offset_msg_id) == (tagged.message_id, tagged.offset_message_id)
    before, after = (
        {one.request_id for one in contexts if one.trace_type is kind}
        for kind in (TraceType.SUB_BEFORE, TraceType.SUB_AFTER)
    )
    assert before == after
    keys = " ".join(one["KEYS"] for one in properties).split()
    assert {tagged.message_id, "k1", "k2"} <= set(keys)


async def test_a_trace_that_cannot_be_sent_delays_nothing(node: Node) -> None:
    async with Producer(
        "p" * 110, namesrv_addr=node.namesrv_address, enable_trace=True
    ) as producer:  # the trace's own group is too long
        assert (await producer.send("T", b"x")).message_id


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
        Hooks(),
        lambda group, *, settings, hooks: Sender(),
    )
    await dispatcher.start()
    for _ in range(3):
        dispatcher.append(recorded("Pub"))
    await until(lambda: len(sent) == 3)
    await dispatcher.shutdown()
    assert caplog.text.count("could not be sent") == 1


async def test_records_beyond_the_limit_are_dropped_and_counted() -> None:
    settings = ClientSettings(namesrv_addr="127.0.0.1:1")
    dispatcher = AsyncTraceDispatcher("g", "PRODUCE", settings, Hooks(), Producer)
    made = recorded("Pub")
    for _ in range(MAX_WAITING + 1):
        assert dispatcher.dropped == 0
        dispatcher.append(made)
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
    dispatcher = AsyncTraceDispatcher("g", "PRODUCE", settings, Hooks(), Producer)
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
    AsyncTraceDispatcher("g", "PRODUCE", settings, hooks, Producer)
    assert len(hooks.rpc) == 1
    hook = RecallTraceHook(kept.append)
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
