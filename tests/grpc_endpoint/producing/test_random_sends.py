"""Any request of a producer is answered, whatever it holds, and the broker goes on."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pocketmq.grpc_endpoint.messages import (
    Duration,
    Encoding,
    EndTransactionRequest,
    Message,
    MessageType,
    QueryRouteRequest,
    RecallMessageRequest,
    Resource,
    SystemProperties,
    Timestamp,
)

from grpc_calls import GrpcBroker, new_message, send
from grpc_client import entries

INT_32 = st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 3)
INT_64 = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2_000_000_000)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8) | st.sampled_from(
    ["", " ", "\x01\x02", "é"]
)
TIMESTAMPS = st.builds(Timestamp, seconds=INT_64, nanos=INT_32)
DURATIONS = st.builds(Duration, seconds=INT_64, nanos=INT_32)
TOPICS = st.builds(
    Resource,
    name=st.sampled_from(["t", "m", "f", "d", "tr", "p", "%RETRY%g", "%DLQ%g", "new", "TBW102", ""]) | TEXT,
)
MESSAGES = st.builds(
    Message,
    topic=TOPICS,
    user_properties=st.dictionaries(TEXT, TEXT, max_size=2).map(entries),
    system_properties=st.builds(
        SystemProperties,
        tag=st.none() | TEXT,
        keys=st.lists(TEXT, max_size=2),
        message_id=TEXT | st.just("ID"),
        body_encoding=st.sampled_from(Encoding),
        message_type=st.sampled_from(MessageType) | INT_32,  # type: ignore[arg-type]
        born_timestamp=TIMESTAMPS,
        born_host=TEXT,
        delivery_timestamp=st.none() | TIMESTAMPS,
        delivery_attempt=st.none() | INT_32,
        queue_id=INT_32,
        message_group=st.none() | TEXT,
        trace_context=st.none() | TEXT,
        orphaned_transaction_recovery_duration=st.none() | DURATIONS,
        lite_topic=st.none() | TEXT,
        priority=st.none() | INT_32,
    ),
    body=st.binary(max_size=8),
)
REQUESTS = st.one_of(
    st.builds(lambda messages: send(*messages), st.lists(MESSAGES, max_size=3)),
    st.builds(EndTransactionRequest, topic=TOPICS, transaction_id=TEXT, message_id=TEXT),
    st.builds(RecallMessageRequest, topic=TOPICS, recall_handle=TEXT),
    st.builds(QueryRouteRequest, topic=TOPICS),
)


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(request=REQUESTS, is_strict=st.booleans())
async def test_random_request_is_answered(
    grpc: GrpcBroker, strict: GrpcBroker, request: Any, is_strict: bool
) -> None:
    of = strict if is_strict else grpc
    if of.broker.topics.find("m") is None:
        for name, kind in {
            "m": "MIXED",
            "f": "FIFO",
            "d": "DELAY",
            "tr": "TRANSACTION",
            "p": "PRIORITY",
        }.items():
            of.topic(name, kind)
        of.topic("t")
    stream = of.begin(request)
    (reply,) = stream.replies
    assert reply.status.code >= 20_000
    assert of.call(send(new_message("t"))).status.code == 20_000
