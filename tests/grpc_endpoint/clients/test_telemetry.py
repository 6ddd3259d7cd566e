"""Settings on the telemetry stream: what a client gets back, and where the broker sees it."""

from collections.abc import Callable
from typing import Any

import pytest
from pocketmq.grpc_endpoint.calls.handler import GrpcStatus
from pocketmq.grpc_endpoint.clients import clients
from pocketmq.grpc_endpoint.messages import (
    Address,
    AddressScheme,
    ClientType,
    Duration,
    Endpoints,
    FilterExpression,
    FilterType,
    Metric,
    NotifyClientTerminationRequest,
    RetryPolicy,
    Settings,
    TelemetryCommand,
    ms_of,
)
from pocketmq.protocol.bodies.group_config import ExponentialRetryPolicy, GroupRetryPolicy

from grpc_calls import FakeStream, GrpcBroker, consumer, producer

FAILED = "process client telemetryCommand failed. "


def refusal(stream: FakeStream) -> tuple[GrpcStatus, str]:
    assert not stream.replies
    assert stream.ended is not None
    return stream.ended


@pytest.mark.parametrize("announced", [producer("t"), consumer("g", ("t",))], ids=["producer", "consumer"])
async def test_clients_are_told_where_to_send_metrics(
    grpc_maker: Callable[..., GrpcBroker], announced: Settings
) -> None:
    """`metricCollectorMode`: to an address of its own, or to where the client has connected to."""
    access = Endpoints(scheme=AddressScheme.IPv4, addresses=[Address(host="127.0.0.1", port=8081)])
    announced.access_point.CopyFrom(access)
    there = grpc_maker(endpoint={"metric_collector_mode": "on", "metric_collector_address": "collector:4317"})
    (reply,) = there.telemetry(announced).replies
    address = Address(host="collector", port=4317)
    assert reply.settings.metric == Metric(
        on=True, endpoints=Endpoints(scheme=AddressScheme.IPv4, addresses=[address])
    )
    (reply,) = grpc_maker(endpoint={"metric_collector_mode": "proxy"}).telemetry(announced).replies
    assert reply.settings.metric == Metric(on=True, endpoints=access)


async def test_producer_is_in_a_group_named_like_each_topic(grpc: GrpcBroker) -> None:
    grpc.telemetry(producer("t", "u"), language="PYTHON")
    producers = grpc.broker.membership.producers
    assert sorted(producers.all()) == ["t", "u"]
    (client,) = producers.all()["t"]
    assert (client.client_id, client.language, client.version) == ("c1", "PYTHON", 513)
    assert client.connection.peer == "127.0.0.1:51000"


async def test_producer_without_topics_is_in_no_group_but_may_send_heartbeats(grpc: GrpcBroker) -> None:
    assert grpc.telemetry(producer()).settings.HasField("backoff_policy")
    assert grpc.broker.membership.producers.all() == {}
    assert grpc.clients.settings_of("c1") is not None


async def test_consumer_gets_the_settings_of_its_group(grpc: GrpcBroker) -> None:
    grpc.group("g", retry_max_times=4, consume_message_orderly=True)
    sent = consumer("g", kind=ClientType.SIMPLE_CONSUMER)
    settings = grpc.telemetry(sent).settings
    assert settings.backoff_policy.max_attempts == 5
    steps = settings.backoff_policy.customized_backoff.next
    assert [step.seconds for step in steps[:3]] == [1, 5, 10]
    assert len(steps) == 18
    subscription = settings.subscription
    assert (subscription.fifo, subscription.receive_batch_size) == (True, 32)
    assert subscription.long_polling_timeout == Duration(seconds=20)
    assert (subscription.lite_subscription_quota, subscription.max_lite_topic_size) == (2000, 64)


async def test_exponential_retry_policy_of_a_group(grpc: GrpcBroker) -> None:
    policy = GroupRetryPolicy(
        type="EXPONENTIAL",
        exponential_retry_policy=ExponentialRetryPolicy(initial=1500, max=9000, multiplier=3),
    )
    grpc.group("g", group_retry_policy=policy)
    got: RetryPolicy = grpc.telemetry(consumer("g")).settings.backoff_policy
    assert got.HasField("exponential_backoff")
    assert ms_of(got.exponential_backoff.initial) == 1500
    assert (ms_of(got.exponential_backoff.max), got.exponential_backoff.multiplier) == (9000, 3.0)


@pytest.mark.parametrize(
    ("kind", "consume_type"),
    [(ClientType.PUSH_CONSUMER, "CONSUME_PASSIVELY"), (ClientType.SIMPLE_CONSUMER, "CONSUME_ACTIVELY")],
)
async def test_consumer_is_a_member_of_its_group(
    grpc: GrpcBroker, kind: ClientType, consume_type: str
) -> None:
    expression = FilterExpression(type=FilterType.TAG, expression="A || B")
    grpc.telemetry(consumer("g", kind=kind, expression=expression))
    group = grpc.members("g")
    assert group.client_ids() == ["c1"]
    assert (group.consume_type, group.message_model) == (consume_type, "CLUSTERING")
    assert group.consume_from_where == "CONSUME_FROM_LAST_OFFSET"
    assert group.expressions() == {"t": "A || B"}


async def test_newer_settings_replace_the_subscriptions(grpc: GrpcBroker, clock: Any) -> None:
    stream = grpc.telemetry(consumer("g", ["t", "u"]))
    clock.advance(1000)
    changed = FilterExpression(type=FilterType.SQL, expression="a > 1")
    stream.send(TelemetryCommand(settings=consumer("g", ["t"], expression=changed)))
    group = grpc.members("g")
    assert group.expressions() == {"t": "a > 1"}
    subscription = group.subscriptions.get("t")
    assert subscription is not None
    assert subscription.expression_type == "SQL92"


async def test_other_members_are_not_notified(grpc: GrpcBroker) -> None:
    first = grpc.telemetry(consumer("g"), client_id="c1")
    grpc.telemetry(consumer("g"), client_id="c2")
    assert len(first.replies) == 1


async def test_unknown_group_is_made_unless_strict(grpc: GrpcBroker, strict: GrpcBroker) -> None:
    assert grpc.telemetry(consumer("new")).replies[-1].HasField("settings")
    assert grpc.broker.groups.find("new") is not None
    refused = refusal(strict.telemetry(consumer("new")))
    assert refused == (GrpcStatus.INVALID_ARGUMENT, FAILED + "group not found: new")


async def test_unknown_group_is_refused_where_groups_are_not_made(grpc_maker: Any) -> None:
    grpc = grpc_maker(auto_create_subscription_group=False)
    assert refusal(grpc.telemetry(consumer("new")))[1] == FAILED + "group not found: new"


async def test_end_of_the_stream_changes_no_membership(grpc: GrpcBroker) -> None:
    stream = grpc.telemetry(consumer("g"))
    stream.close()
    assert stream.ended == (GrpcStatus.OK, "")
    assert grpc.clients.settings_of("c1") is not None
    assert grpc.broker.membership.consumers.get("g") is not None


async def test_a_client_is_one_member_whatever_its_connections(grpc: GrpcBroker) -> None:
    grpc.telemetry(consumer("g"), port=51_001)
    grpc.telemetry(consumer("g"), port=51_002)
    group = grpc.members("g")
    (client,) = group.clients()
    assert client.connection.peer == "127.0.0.1:51001"


async def test_large_settings_are_refused(grpc: GrpcBroker) -> None:
    topics = [f"t{number:0100}" for number in range(700)]
    status, text = refusal(grpc.telemetry(producer(*topics)))
    assert status == GrpcStatus.INVALID_ARGUMENT
    assert text.startswith(FAILED + "the settings have ")
    assert len(grpc.clients) == 0


async def test_settings_name_a_limited_number_of_topics_whose_names_are_possible(grpc: GrpcBroker) -> None:
    """Each is a registration, and a line in the log where the topic does not exist."""
    grpc.group("g")
    for sent in (producer(*["t"] * 1_001), consumer("g", ["t"] * 1_001)):
        assert refusal(grpc.telemetry(sent)) == (
            GrpcStatus.INVALID_ARGUMENT,
            FAILED + "the settings name more than 1000 topics",
        )
    assert refusal(grpc.telemetry(consumer("g", ["t" * 128])))[1].startswith(
        FAILED + "The specified topic is longer"
    )
    assert grpc.telemetry(consumer("g", ["t"] * 1_000)).replies[-1].HasField("settings")


async def test_settings_of_all_clients_have_a_limit(
    grpc: GrpcBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their ids count: headers may be 8 KiB long."""
    monkeypatch.setattr(clients, "MAX_ALL_SETTINGS_BYTES", 400)
    assert refusal(grpc.telemetry(producer("t"), client_id="c" * 400))[1].endswith("take too much memory")
    assert grpc.telemetry(producer("t")).replies[-1].HasField("settings")
    assert grpc.telemetry(producer("t")).replies[-1].HasField("settings")
    for number in range(20):
        stream = grpc.telemetry(producer("t"), client_id=f"c{number}")
    assert refusal(stream)[1].endswith("the settings of all clients take too much memory")
    grpc.call(NotifyClientTerminationRequest(), client_id="c1")
    assert grpc.telemetry(producer("t"), client_id="c1").replies[-1].HasField("settings")


async def test_settings_count_as_what_they_take_in_memory(
    grpc: GrpcBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty property has two bytes on the wire."""
    monkeypatch.setattr(clients, "MAX_ALL_SETTINGS_BYTES", 100_000)
    sent = producer("t")
    for _ in range(900):
        sent.client_properties.add()
    assert refusal(grpc.telemetry(sent))[1].endswith("the settings of all clients take too much memory")
