"""Automatic renewal, on a virtual clock: messages stay with a client as long as it lives, and no longer."""

from typing import Any

import pytest
from pocketmq.grpc_endpoint.consuming import renewal as renewal_module
from pocketmq.grpc_endpoint.consuming.delivery import Delivery
from pocketmq.grpc_endpoint.consuming.renewal import RENEWAL_MS, retry_delay_ms
from pocketmq.grpc_endpoint.messages import Code
from pocketmq.protocol.bodies.group_config import (
    CustomizedRetryPolicy,
    ExponentialRetryPolicy,
    GroupRetryPolicy,
    SubscriptionGroupConfig,
)
from pocketmq.store import StoreError, VirtualClock

from broker_fakes import turns
from grpc_consumers import Consumers


async def test_a_message_that_a_client_holds_is_not_delivered_again(consumers: Consumers) -> None:
    asked = consumers.receive(batch_size=1)
    consumers.pass_time(300)
    assert consumers.receive(batch_size=1).bodies == ["m1"]
    assert consumers.ack(("id-m0", asked.handles[0])).status == (Code.OK, "OK")
    assert len(consumers.consuming.renewal) == 1
    consumers.pass_time(400)
    assert consumers.receive().bodies == ["m2", "m3"]


async def test_a_renewed_message_that_was_not_the_first_of_its_receive_can_be_acknowledged(
    consumers: Consumers,
) -> None:
    asked = consumers.receive(batch_size=3)
    consumers.pass_time(300)
    for number, handle in enumerate(asked.handles):
        assert consumers.ack((f"id-m{number}", handle)).status == (Code.OK, "OK")
    consumers.pass_time(800)
    assert consumers.receive().bodies == ["m3"]


async def test_each_renewal_is_for_longer(consumers: Consumers, clock: VirtualClock) -> None:
    consumers.receive(batch_size=1)
    seen = []
    for _ in range(3 * 720):
        clock.advance(5000)
        consumers.consuming.renewal.scan()
        [held] = consumers.consuming.renewal._messages["c1"].values()
        invisible_ms = held.delivered.handle.receipt.invisible_time_ms
        if held.renewals and (not seen or seen[-1] != invisible_ms):
            seen.append(invisible_ms)
    assert tuple(seen) == RENEWAL_MS


async def test_renewal_ends_some_hours_after_the_delivery(make_consumers: Any) -> None:
    consumers: Consumers = make_consumers(renew_max_time_millis=200_000)
    asked = consumers.receive(batch_size=1)
    consumers.receive(batch_size=3, invisible=4000)
    consumers.pass_time(260)
    assert consumers.receive(batch_size=1, invisible=4000).bodies == []
    consumers.pass_time(30)
    assert len(consumers.consuming.renewal) == 0
    assert consumers.receive().bodies == ["m0"]
    assert consumers.ack(("id-m0", asked.handles[0])).status[0] == Code.INVALID_RECEIPT_HANDLE


@pytest.mark.parametrize(("failures", "is_kept"), [(2, True), (3, False)])
async def test_a_renewal_that_fails_is_tried_again_some_times(
    make_consumers: Any, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, failures: int, is_kept: bool
) -> None:
    """`maxRenewRetryTimes`: a disk that fails for a moment costs no client its message."""
    consumers: Consumers = make_consumers(max_renew_retry_times=2)
    consumers.receive(batch_size=1)
    clock.advance(51_000)
    with monkeypatch.context() as patch:
        patch.setattr(Delivery, "hide", failing)
        for _ in range(failures):
            consumers.consuming.renewal.scan()
    consumers.consuming.renewal.scan()
    held = [message for _, _, message in consumers.consuming.renewal._held()]
    assert [one.renewals for one in held] == ([1] if is_kept else [])
    assert len(consumers.consuming.renewal) == len(held)


async def test_a_store_that_fails_for_one_client_costs_the_others_nothing(
    consumers: Consumers, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages of a client that left were given back outside of what catches the error: the scan ended there."""
    consumers.announce("c2")
    consumers.receive(batch_size=1)
    consumers.receive(batch_size=1, client_id="c2")
    renewal = consumers.consuming.renewal
    clock.advance(51_000)
    hide, is_member = Delivery.hide, renewal._is_member
    monkeypatch.setattr(
        renewal, "_is_member", lambda client, group: client != "c1" and is_member(client, group)
    )

    def fails_for_first(self: Delivery, *arguments: Any, **options: Any) -> Any:
        return failing() if self.handle.receipt.offset == 0 else hide(self, *arguments, **options)

    monkeypatch.setattr(Delivery, "hide", fails_for_first)
    renewal.scan()
    assert list(renewal._messages) == ["c2"]
    [held] = renewal._messages["c2"].values()
    assert held.renewals == 1
    assert len(renewal) == 1


async def test_a_scan_of_many_messages_is_done_in_turns(
    consumers: Consumers, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200,000 messages due at once held the loop for seconds. Virtual time does not go on before all is done."""
    monkeypatch.setattr(renewal_module, "TURN_MESSAGES", 2)
    consumers.receive()
    renewal = consumers.consuming.renewal
    held = list(renewal._messages["c1"].values())
    assert len(held) == 4
    clock.advance(51_000)
    monkeypatch.setattr(type(renewal._timers), "is_virtual", False)
    renewal.scan()
    renewal.scan()
    assert [one.renewals for one in held] == [1, 1, 0, 0]
    await turns()
    assert [one.renewals for one in held] == [1, 1, 1, 1]
    monkeypatch.setattr(type(renewal._timers), "is_virtual", True)
    clock.advance(51_000)
    renewal.scan()
    assert [one.renewals for one in held] == [2, 2, 2, 2]


def failing(*arguments: object, **options: object) -> None:
    raise StoreError("no room")


@pytest.mark.parametrize(
    ("settings", "renewals"),
    [
        ({}, [0, 0, 1]),
        ({"renew_ahead_time_millis": 25_000}, [0, 1, 1]),
        ({"renew_schedule_period_millis": 20_000}, [0, 0, 0]),
    ],
    ids=["official", "renewAheadTimeMillis", "renewSchedulePeriodMillis"],
)
async def test_when_a_message_is_renewed_is_set_by_keys(
    make_consumers: Any, settings: dict[str, int], renewals: list[int]
) -> None:
    consumers: Consumers = make_consumers(count=1, **settings)
    consumers.receive()
    [held] = consumers.consuming.renewal._messages["c1"].values()
    found = []
    for seconds in (20, 20, 15):
        consumers.pass_time(seconds)
        found.append(held.renewals)
    assert found == renewals


@pytest.mark.parametrize(("ms", "is_back"), [(1000, True), (9000, False)])
async def test_how_soon_the_messages_of_a_client_that_ends_are_back_is_set_by_a_key(
    make_consumers: Any, ms: int, is_back: bool
) -> None:
    """`invisibleTimeMillisWhenClear`."""
    consumers: Consumers = make_consumers(count=1, invisible_time_millis_when_clear=ms)
    consumers.announce("c2")
    consumers.receive()
    consumers.clients.forget(consumers.peer("c1"))
    consumers.pass_time(5)
    assert consumers.receive("c2").bodies == (["m0"] if is_back else [])


async def test_a_client_that_ends_gives_its_messages_back_at_once(consumers: Consumers) -> None:
    consumers.announce("c2")
    consumers.receive()
    waiting = consumers.receive("c2")
    consumers.clients.forget(consumers.peer("c1"))
    assert len(consumers.consuming.renewal) == 0
    consumers.pass_time(5)
    await turns()
    assert sorted(waiting.bodies + consumers.receive("c2").bodies) == ["m0", "m1", "m2", "m3"]


async def test_a_client_that_is_no_member_at_a_scan_gives_its_messages_back(consumers: Consumers) -> None:
    consumers.announce("c2")
    consumers.receive()
    consumers.broker.membership.consumers.unregister("g", consumers.peer("c1"), is_notified=False)
    consumers.pass_time(60)
    assert sorted(consumers.receive("c2").bodies) == ["m0", "m1", "m2", "m3"]


async def test_the_end_of_the_endpoint_gives_all_messages_back(consumers: Consumers) -> None:
    consumers.receive()
    consumers.consuming.stop()
    assert len(consumers.consuming.renewal) == 0
    consumers.pass_time(6)
    assert len(consumers.receive(invisible=30).bodies) == 4


async def test_a_broker_that_goes_back_in_time_forgets_what_clients_hold(consumers: Consumers) -> None:
    consumers.receive()
    consumers.broker.popping.rewind()
    assert len(consumers.consuming.renewal) == 0
    assert consumers.consuming.renewal.next_due() is None


async def test_a_changed_message_is_not_renewed_any_more(consumers: Consumers) -> None:
    asked = consumers.receive(batch_size=1)
    assert consumers.change("id-m0", asked.handles[0], 55).status[0] == Code.OK
    assert len(consumers.consuming.renewal) == 0
    consumers.consuming.renewal.scan()
    assert consumers.consuming.renewal.next_due() is None
    consumers.receive(batch_size=3, invisible=4000)
    consumers.pass_time(66)
    assert consumers.receive().bodies == ["m0"]


async def test_another_clients_ack_uses_the_handle_it_sends(consumers: Consumers) -> None:
    asked = consumers.receive(batch_size=1)
    consumers.pass_time(70)
    assert consumers.ack(("id-m0", asked.handles[0]), client_id="c2").status[0] == Code.INVALID_RECEIPT_HANDLE
    assert consumers.ack(("id-m0", asked.handles[0])).status[0] == Code.OK


async def test_a_message_given_up_is_not_renewed_any_more(consumers: Consumers) -> None:
    asked = consumers.receive(batch_size=1)
    consumers.pass_time(70)
    assert consumers.give_up("id-m0", asked.handles[0]).status[0] == Code.OK
    assert len(consumers.consuming.renewal) == 0


async def test_messages_in_order_are_renewed_too(consumers: Consumers) -> None:
    consumers.broker.groups.update(SubscriptionGroupConfig(group_name="g", consume_message_orderly=True))
    consumers.announce("c1")
    asked = consumers.receive(batch_size=1, attempt_id="a")
    waiting = consumers.receive(attempt_id="b")
    consumers.pass_time(15)
    assert waiting.bodies == []
    consumers.pass_time(100)
    other = consumers.receive(attempt_id="c")
    assert other.bodies == []
    assert consumers.ack(("id-m0", asked.handles[0])).status[0] == Code.OK
    await turns()
    assert other.bodies == ["m1", "m2", "m3"]


@pytest.mark.parametrize(
    ("policy", "times", "expected_ms"),
    [
        (GroupRetryPolicy(), 0, 10_000),
        (GroupRetryPolicy(), 1, 30_000),
        (GroupRetryPolicy(), 99, 7_200_000),
        (GroupRetryPolicy(customized_retry_policy=CustomizedRetryPolicy(next=(7,))), 0, 7),
        (GroupRetryPolicy(type="EXPONENTIAL"), 0, 5000),
        (GroupRetryPolicy(type="EXPONENTIAL"), 3, 40_000),
        (GroupRetryPolicy(type="EXPONENTIAL"), 1000, 7_200_000),
        (
            GroupRetryPolicy(
                type="EXPONENTIAL",
                exponential_retry_policy=ExponentialRetryPolicy(initial=10, max=1 << 50, multiplier=2),
            ),
            1000,
            10 << 32,
        ),
    ],
)
def test_the_delay_after_the_last_renewal_is_the_groups(
    policy: GroupRetryPolicy, times: int, expected_ms: int
) -> None:
    assert retry_delay_ms(policy, times) == expected_ms


async def test_what_is_refused_while_too_many_answers_wait_for_the_disk_keeps_its_renewal(
    consumers: Consumers,
) -> None:
    durable_log = consumers.consuming.durable_log
    (handle,) = consumers.receive(batch_size=1).handles
    durable_log.waiting = 100_000
    consumers.pass_time(300)  # the server's own renewals wait for nothing
    busy = Code.TOO_MANY_REQUESTS, "[OVERLOAD]system busy, start flow control for a while"
    refused = consumers.ack(("id-m0", handle)), consumers.change("id-m0", handle, 60)
    assert [asked.status for asked in (*refused, consumers.give_up("id-m0", handle))] == [busy] * 3
    assert durable_log.waiting == 100_000
    durable_log.waiting = 0
    assert consumers.ack(("id-m0", handle)).status == (Code.OK, "OK")
    assert len(consumers.consuming.renewal) == 0
