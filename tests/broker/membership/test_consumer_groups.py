"""Membership rules of ConsumerManager: the members and subscriptions of a group, and which members are notified."""

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.membership.client import Client
from pocketmq.broker.membership.consumer_groups import ConsumerGroup, ConsumerGroups
from pocketmq.broker.network.dispatch import Peer
from pocketmq.protocol.bodies.client import SubscriptionData

from broker_fakes import FakeConnection


class Told:
    """Records the notices: group and peers, oldest first."""

    def __init__(self) -> None:
        self.notices: list[tuple[str, list[str]]] = []

    def __call__(self, group: str, connections: Collection[Peer]) -> None:
        self.notices.append((group, [connection.peer[-1] for connection in connections]))

    def take(self) -> list[tuple[str, list[str]]]:
        notices, self.notices = self.notices, []
        return notices


def subscription(topic: str, version: int = 1, text: str = "*") -> SubscriptionData:
    return SubscriptionData(topic=topic, sub_string=text, sub_version=version)


def join(
    groups: ConsumerGroups,
    connection: FakeConnection,
    *topics: str | SubscriptionData,
    group: str = "g",
    client_id: str | None = None,
    model: str = "CLUSTERING",
    is_notified: bool = True,
    now_ms: int = 0,
    without_subscriptions: bool = False,
) -> bool:
    named = [topic if isinstance(topic, SubscriptionData) else subscription(topic) for topic in topics]
    return groups.register(
        group,
        Client(connection, client_id or f"client-{connection.peer}", "JAVA", 513, now_ms),
        consume_type="CONSUME_PASSIVELY",
        message_model=model,
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscriptions=None if without_subscriptions else named,
        is_notified=is_notified,
    )


def known(groups: ConsumerGroups, name: str = "g") -> ConsumerGroup:
    group = groups.get(name)
    assert group is not None
    return group


async def test_first_heartbeat_makes_the_group_and_tells_its_sender() -> None:
    told = Told()
    groups = ConsumerGroups(told)
    assert join(groups, FakeConnection(1), "t")
    assert known(groups).client_ids() == ["client-127.0.0.1:1"]
    assert known(groups).subscription("t") == subscription("t")
    assert told.take() == [("g", ["1"])]


async def test_a_repeated_heartbeat_notifies_no_member() -> None:
    told = Told()
    groups = ConsumerGroups(told)
    one = FakeConnection(1)
    join(groups, one, "t")
    told.take()
    assert not join(groups, one, "t")
    assert told.take() == []


async def test_both_members_are_notified_of_the_second() -> None:
    told = Told()
    groups = ConsumerGroups(told)
    join(groups, FakeConnection(1), "t")
    told.take()
    join(groups, FakeConnection(2), "t")
    assert told.take() == [("g", ["1", "2"])]


async def test_a_newer_subscription_replaces_the_older_one_without_notice() -> None:
    told = Told()
    groups = ConsumerGroups(told)
    one = FakeConnection(1)
    join(groups, one, subscription("t", 5, "a"))
    told.take()
    assert not join(groups, one, subscription("t", 6, "b"))
    assert known(groups).subscriptions["t"].sub_string == "b"
    assert told.take() == []


async def test_an_older_or_equal_subscription_is_ignored() -> None:
    groups = ConsumerGroups(Told())
    one = FakeConnection(1)
    join(groups, one, subscription("t", 5, "a"))
    for version in (4, 5):
        join(groups, one, subscription("t", version, "b"))
    assert known(groups).subscriptions["t"].sub_string == "a"


async def test_a_topic_the_heartbeat_does_not_name_is_dropped_for_the_whole_group() -> None:
    told = Told()
    groups = ConsumerGroups(told)
    join(groups, FakeConnection(1), "t", "u")
    two = FakeConnection(2)
    told.take()
    assert join(groups, two, "t")
    assert set(known(groups).subscriptions) == {"t"}
    assert told.take() == [("g", ["1", "2"])]


async def test_a_heartbeat_without_subscriptions_keeps_what_is_known() -> None:
    told = Told()
    groups = ConsumerGroups(told)
    one = FakeConnection(1)
    join(groups, one, "t", "u")
    told.take()
    assert not join(groups, one, without_subscriptions=True)
    assert set(known(groups).subscriptions) == {"t", "u"}
    assert join(groups, FakeConnection(2), without_subscriptions=True)
    assert told.take() == [("g", ["1", "2"])]


async def test_the_last_heartbeat_sets_the_model_of_the_group() -> None:
    groups = ConsumerGroups(Told())
    join(groups, FakeConnection(1), "t")
    join(groups, FakeConnection(2), "t", model="BROADCASTING")
    assert known(groups).is_broadcasting


async def test_another_client_id_on_the_same_connection_takes_its_place_without_notice() -> None:
    told = Told()
    groups = ConsumerGroups(told)
    one = FakeConnection(1)
    join(groups, one, "t", client_id="old")
    told.take()
    assert not join(groups, one, "t", client_id="new")
    assert known(groups).client_ids() == ["new"]
    assert groups.find("g", "old") is None
    assert told.take() == []


async def test_the_switch_of_the_group_keeps_joins_and_leaves_quiet_but_not_lost_connections() -> None:
    told = Told()
    groups = ConsumerGroups(told)
    one, two, three = (FakeConnection(port) for port in (1, 2, 3))
    for connection in (one, two, three):
        join(groups, connection, "t", is_notified=False)
    groups.unregister("g", one, is_notified=False)
    assert told.take() == []
    groups.connection_closed(two)
    assert told.take() == [("g", ["3"])]


async def test_unregistering_notifies_the_remaining_members() -> None:
    told = Told()
    groups = ConsumerGroups(told)
    one = FakeConnection(1)
    join(groups, one, "t")
    join(groups, FakeConnection(2), "t")
    told.take()
    groups.unregister("g", one)
    assert told.take() == [("g", ["2"])]


async def test_the_group_is_removed_with_its_last_member() -> None:
    told = Told()
    groups = ConsumerGroups(told)
    one = FakeConnection(1)
    join(groups, one, "t")
    told.take()
    groups.unregister("g", one)
    assert groups.get("g") is None
    assert len(groups) == 0
    assert told.take() == []


async def test_broadcasting_members_are_not_notified() -> None:
    told = Told()
    groups = ConsumerGroups(told)
    one, two = FakeConnection(1), FakeConnection(2)
    join(groups, one, "t", model="BROADCASTING")
    join(groups, two, "t", model="BROADCASTING")
    groups.unregister("g", one)
    join(groups, one, "t", model="BROADCASTING")
    groups.connection_closed(two)
    assert told.take() == []


async def test_the_4_9_line_tells_broadcasting_members_too() -> None:
    told = Told()
    groups = ConsumerGroups(told, is_5=False)
    one, two = FakeConnection(1), FakeConnection(2)
    join(groups, one, "t", model="BROADCASTING")
    join(groups, two, "t", model="BROADCASTING")
    assert told.take() == [("g", ["1"]), ("g", ["1", "2"])]
    groups.unregister("g", two)
    assert told.take() == [("g", ["1"])]


async def test_a_lost_connection_leaves_every_group() -> None:
    told = Told()
    groups = ConsumerGroups(told)
    one, two = FakeConnection(1), FakeConnection(2)
    join(groups, one, "t", group="g")
    join(groups, one, "t", group="h")
    join(groups, two, "t", group="h")
    told.take()
    groups.connection_closed(one)
    assert groups.get("g") is None
    assert known(groups, "h").client_ids() == ["client-127.0.0.1:2"]
    assert told.take() == [("h", ["2"])]


async def test_a_client_silent_for_more_than_two_minutes_is_dropped_and_its_connection_closed() -> None:
    told = Told()
    groups = ConsumerGroups(told)
    silent, lively = FakeConnection(1), FakeConnection(2)
    join(groups, silent, "t", now_ms=0)
    join(groups, lively, "t", now_ms=100_000)
    told.take()
    list(groups.expire(120_000))
    assert not silent.closed
    list(groups.expire(120_001))
    assert silent.closed
    assert not lively.closed
    assert known(groups).client_ids() == ["client-127.0.0.1:2"]
    assert told.take() == []
    list(groups.expire(220_001))
    assert groups.get("g") is None


async def test_a_heartbeat_keeps_a_client_from_expiring() -> None:
    groups = ConsumerGroups(Told())
    one = FakeConnection(1)
    join(groups, one, "t", now_ms=0)
    join(groups, one, "t", now_ms=60_000)
    list(groups.expire(150_000))
    assert groups.get("g") is not None


async def test_groups_of_a_topic_are_those_online_that_subscribe_to_it_now() -> None:
    groups = ConsumerGroups(Told())
    one = FakeConnection(1)
    join(groups, one, "t", "u", group="g")
    join(groups, one, "t", group="h")
    assert groups.subscribed_to("t") == ["g", "h"]
    join(groups, one, "t", group="g")
    assert groups.subscribed_to("u") == []


@given(
    st.lists(st.tuples(st.sampled_from(["join", "leave", "close"]), st.integers(0, 3), st.sampled_from("gh")))
)
async def test_members_are_exactly_those_who_joined_and_did_not_leave(
    steps: list[tuple[str, int, str]],
) -> None:
    groups = ConsumerGroups(Told())
    connections = [FakeConnection(port) for port in range(4)]
    members: dict[str, list[int]] = {"g": [], "h": []}
    for action, index, name in steps:
        if action == "join":
            join(groups, connections[index], "t", group=name)
            if index not in members[name]:
                members[name].append(index)
        elif action == "leave":
            groups.unregister(name, connections[index])
            members[name] = [member for member in members[name] if member != index]
        else:
            groups.connection_closed(connections[index])
            for other in members:
                members[other] = [member for member in members[other] if member != index]
        for other, expected in members.items():
            group = groups.get(other)
            ids = [] if group is None else group.client_ids()
            assert ids == [f"client-127.0.0.1:{member}" for member in expected]
            assert (group is None) == (not expected)
