"""Members are notified of a change at once, later, or not at all."""

import asyncio
import itertools

from pocketmq.broker.broker import Broker
from pocketmq.broker.membership.consumer_notices import NOTICES_IN_A_TURN
from pocketmq.protocol.requests.to_client import NotifyConsumerIdsChanged

from broker_fakes import FakeConnection, turns

NOTICE = NotifyConsumerIdsChanged(consumer_group="g")


async def test_every_member_is_notified_of_a_change_at_once(broker: Broker) -> None:
    one, two = FakeConnection(1), FakeConnection(2)
    broker.membership.notices.notify_change("g", [one, two])
    assert one.take_notices() == two.take_notices() == [NOTICE]


async def test_the_switch_of_the_broker_silences_every_group(broker: Broker) -> None:
    broker.config.notify_consumer_ids_changed_enable = False
    one = FakeConnection(1)
    broker.membership.notices.notify_change("g", [one])
    assert one.take_notices() == []


async def test_without_real_time_changes_are_collected_into_one_notice(broker: Broker) -> None:
    broker.config.real_time_notify_consumer_change = False
    one, two = FakeConnection(1), FakeConnection(2)
    broker.membership.notices.notify_change("g", [one])
    broker.membership.notices.notify_change("g", [one, two])
    assert one.take_notices() == []
    broker.membership.notices.flush()
    assert one.take_notices() == two.take_notices() == [NOTICE]
    broker.membership.notices.flush()
    assert one.take_notices() == []


async def test_the_4_9_line_knows_no_collecting(broker4: Broker) -> None:
    broker4.config.real_time_notify_consumer_change = False
    one = FakeConnection(1)
    broker4.membership.notices.notify_change("g", [one])
    assert one.take_notices() == [NOTICE]


async def test_a_thousand_members_are_notified_some_at_a_time_and_changes_meanwhile_share_a_round(
    broker: Broker,
) -> None:
    members: list[FakeConnection] = []
    sent = [0]
    for number in range(1000):  # they join within one loop iteration
        members.append(FakeConnection(number))
        broker.membership.notices.notify_change("g", members)
    while len(sent) < 50 and (len(sent) < 3 or sent[-1] > sent[-2]):
        sent.append(sum(len(member.notices) for member in members))
        await asyncio.sleep(0)
    assert max(after - before for before, after in itertools.pairwise(sent)) <= NOTICES_IN_A_TURN
    assert all(member.notices for member in members)
    assert sent[-1] < 3000  # it was half a million


async def test_groups_share_the_notices_of_an_iteration(broker: Broker) -> None:
    members = {name: [FakeConnection(number) for number in range(150)] for name in "abc"}
    for name, of_group in members.items():
        broker.membership.notices.notify_change(name, of_group)
    assert sum(len(one.notices) for of_group in members.values() for one in of_group) == NOTICES_IN_A_TURN
    await turns(4)
    assert {len(one.notices) for of_group in members.values() for one in of_group} == {1}
