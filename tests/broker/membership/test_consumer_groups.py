"""Membership rules of ConsumerManager: the members and subscriptions of a group, and which members are notified."""

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.membership.consumer_groups import Client, ConsumerGroup, ConsumerGroups
from pocketmq.broker.network.dispatch import Peer
from pocketmq.protocol.bodies.client import SubscriptionData

from broker_fakes import FakeConnection


def subscription(topic: str, version: int = 1, text: str = "*") -> SubscriptionData:
    return SubscriptionData(topic=topic, sub_string=text, sub_version=version)


class Groups(ConsumerGroups):
    """Groups whose members are named by the ports of their connections, and the notices: a group and its members."""

    def __init__(self, *, is_5: bool = True) -> None:
        super().__init__(self._record, is_5=is_5)
        self._peers: dict[int, FakeConnection] = {}
        self._notices: list[tuple[str, list[int]]] = []

    def _record(self, group: str, connections: Collection[Peer]) -> None:
        self._notices.append((group, [int(connection.peer.rpartition(":")[2]) for connection in connections]))

    def take(self) -> list[tuple[str, list[int]]]:
        """The notices since the last look, the oldest first."""
        notices, self._notices = self._notices, []
        return notices

    def peer(self, port: int) -> FakeConnection:
        return self._peers.setdefault(port, FakeConnection(port))

    def join(
        self,
        port: int,
        *topics: str | SubscriptionData,
        group: str = "g",
        client_id: str | None = None,
        model: str = "CLUSTERING",
        is_notified: bool = True,
        now_ms: int = 0,
        without_subscriptions: bool = False,
    ) -> bool:
        named = [topic if isinstance(topic, SubscriptionData) else subscription(topic) for topic in topics]
        connection = self.peer(port)
        return self.register(
            group,
            Client(connection, client_id or f"client-{connection.peer}", "JAVA", 513, now_ms),
            consume_type="CONSUME_PASSIVELY",
            message_model=model,
            consume_from_where="CONSUME_FROM_LAST_OFFSET",
            subscriptions=None if without_subscriptions else named,
            is_notified=is_notified,
        )

    def known(self, name: str = "g") -> ConsumerGroup:
        group = self.get(name)
        assert group is not None
        return group


@pytest.fixture
async def groups() -> Groups:
    return Groups()


async def test_the_first_heartbeat_makes_the_group_and_each_new_member_is_a_notice_to_all(
    groups: Groups,
) -> None:
    assert groups.join(1, "t")
    assert groups.known().client_ids() == ["client-127.0.0.1:1"]
    assert groups.known().subscriptions["t"] == subscription("t")
    assert groups.take() == [("g", [1])]
    assert not groups.join(1, "t")
    assert groups.take() == []
    groups.join(2, "t")
    assert groups.take() == [("g", [1, 2])]


async def test_only_a_newer_subscription_replaces_the_older_one_without_notice(groups: Groups) -> None:
    groups.join(1, subscription("t", 5, "a"))
    groups.take()
    for version, text in ((4, "a"), (5, "a"), (6, "b")):
        assert not groups.join(1, subscription("t", version, "b"))
        assert groups.known().subscriptions["t"].sub_string == text
    assert groups.take() == []


async def test_a_topic_the_heartbeat_does_not_name_is_dropped_for_the_whole_group(groups: Groups) -> None:
    groups.join(1, "t", "u")
    groups.take()
    assert groups.join(2, "t")
    assert set(groups.known().subscriptions) == {"t"}
    assert groups.take() == [("g", [1, 2])]


async def test_a_heartbeat_without_subscriptions_keeps_what_is_known(groups: Groups) -> None:
    groups.join(1, "t", "u")
    groups.take()
    assert not groups.join(1, without_subscriptions=True)
    assert set(groups.known().subscriptions) == {"t", "u"}
    assert groups.join(2, without_subscriptions=True)
    assert groups.take() == [("g", [1, 2])]


async def test_the_last_heartbeat_sets_the_model_of_the_group(groups: Groups) -> None:
    groups.join(1, "t")
    groups.join(2, "t", model="BROADCASTING")
    assert groups.known().is_broadcasting


async def test_another_client_id_on_the_same_connection_takes_its_place_without_notice(
    groups: Groups,
) -> None:
    groups.join(1, "t", client_id="old")
    groups.take()
    assert not groups.join(1, "t", client_id="new")
    assert groups.known().client_ids() == ["new"]
    assert groups.find("g", "old") is None
    assert groups.take() == []


async def test_the_switch_of_the_group_keeps_joins_and_leaves_quiet_but_not_lost_connections(
    groups: Groups,
) -> None:
    for port in (1, 2, 3):
        groups.join(port, "t", is_notified=False)
    groups.unregister("g", groups.peer(1), is_notified=False)
    assert groups.take() == []
    groups.connection_closed(groups.peer(2))
    assert groups.take() == [("g", [3])]


async def test_unregistering_notifies_the_remaining_members_and_the_last_one_ends_the_group(
    groups: Groups,
) -> None:
    groups.join(1, "t")
    groups.join(2, "t")
    groups.take()
    groups.unregister("g", groups.peer(1))
    assert groups.take() == [("g", [2])]
    groups.unregister("g", groups.peer(2))
    assert (groups.get("g"), groups.names()) == (None, [])
    assert groups.take() == []


@pytest.mark.parametrize("is_5", [True, False])
async def test_only_the_4_9_line_notifies_broadcasting_members(is_5: bool) -> None:
    groups = Groups(is_5=is_5)
    groups.join(1, "t", model="BROADCASTING")
    groups.join(2, "t", model="BROADCASTING")
    assert groups.take() == ([] if is_5 else [("g", [1]), ("g", [1, 2])])
    groups.unregister("g", groups.peer(2))
    assert groups.take() == ([] if is_5 else [("g", [1])])
    groups.join(2, "t", model="BROADCASTING")
    groups.connection_closed(groups.peer(1))
    assert groups.take() == ([] if is_5 else [("g", [1, 2]), ("g", [2])])


async def test_a_lost_connection_leaves_every_group(groups: Groups) -> None:
    for port, group in ((1, "g"), (1, "h"), (2, "h")):
        groups.join(port, "t", group=group)
    groups.take()
    groups.connection_closed(groups.peer(1))
    assert groups.get("g") is None
    assert groups.known("h").client_ids() == ["client-127.0.0.1:2"]
    assert groups.take() == [("h", [2])]


async def test_a_client_silent_for_more_than_two_minutes_is_dropped_and_its_connection_closed(
    groups: Groups,
) -> None:
    groups.join(1, "t", now_ms=0)
    groups.join(2, "t", now_ms=0)
    groups.join(2, "t", now_ms=100_000)  # a heartbeat keeps it
    groups.take()
    list(groups.expire(120_000))
    assert not groups.peer(1).closed
    list(groups.expire(120_001))
    assert groups.peer(1).closed
    assert not groups.peer(2).closed
    assert groups.known().client_ids() == ["client-127.0.0.1:2"]
    assert groups.take() == []
    list(groups.expire(220_001))
    assert groups.get("g") is None


async def test_groups_of_a_topic_are_those_online_that_subscribe_to_it_now(groups: Groups) -> None:
    groups.join(1, "t", "u", group="g")
    groups.join(1, "t", group="h")
    assert groups.groups_reading("t") == ["g", "h"]
    groups.join(1, "t", group="g")
    assert groups.groups_reading("u") == []


@given(
    st.lists(st.tuples(st.sampled_from(["join", "leave", "close"]), st.integers(0, 3), st.sampled_from("gh")))
)
async def test_members_are_exactly_those_who_joined_and_did_not_leave(
    steps: list[tuple[str, int, str]],
) -> None:
    groups = Groups()
    members: dict[str, list[int]] = {"g": [], "h": []}
    for action, index, name in steps:
        if action == "join":
            groups.join(index, "t", group=name)
            if index not in members[name]:
                members[name].append(index)
        elif action == "leave":
            groups.unregister(name, groups.peer(index))
            members[name] = [member for member in members[name] if member != index]
        else:
            groups.connection_closed(groups.peer(index))
            for other in members:
                members[other] = [member for member in members[other] if member != index]
        for other, expected in members.items():
            group = groups.get(other)
            ids = [] if group is None else group.client_ids()
            assert ids == [f"client-127.0.0.1:{member}" for member in expected]
            assert (group is None) == (not expected)
