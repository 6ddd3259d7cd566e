"""Members are notified of a change at once, later, or not at all."""

from pocketmq.broker.broker import Broker
from pocketmq.protocol.requests.to_client import NotifyConsumerIdsChanged

from broker_fakes import FakeConnection

NOTICE = NotifyConsumerIdsChanged(consumer_group="g")


async def test_every_member_is_notified_of_a_change_at_once(broker: Broker) -> None:
    one, two = FakeConnection(1), FakeConnection(2)
    broker.membership.notices.changed("g", [one, two])
    assert one.take_notices() == two.take_notices() == [NOTICE]


async def test_the_switch_of_the_broker_silences_every_group(broker: Broker) -> None:
    broker.config.notify_consumer_ids_changed_enable = False
    one = FakeConnection(1)
    broker.membership.notices.changed("g", [one])
    assert one.take_notices() == []


async def test_without_real_time_changes_are_collected_into_one_notice(broker: Broker) -> None:
    broker.config.real_time_notify_consumer_change = False
    one, two = FakeConnection(1), FakeConnection(2)
    broker.membership.notices.changed("g", [one])
    broker.membership.notices.changed("g", [one, two])
    assert one.take_notices() == []
    broker.membership.notices.flush()
    assert one.take_notices() == two.take_notices() == [NOTICE]
    broker.membership.notices.flush()
    assert one.take_notices() == []


async def test_the_4_9_line_knows_no_collecting(broker4: Broker) -> None:
    broker4.config.real_time_notify_consumer_change = False
    one = FakeConnection(1)
    broker4.membership.notices.changed("g", [one])
    assert one.take_notices() == [NOTICE]
