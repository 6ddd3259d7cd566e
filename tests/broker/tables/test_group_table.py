"""The group table: creation on first use, administration, forbidden topics."""

from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.tables.attributes import AttributeRefusedError
from pocketmq.broker.tables.group_table import GroupTable
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.group_config import (
    DEFAULT_RETRY_INTERVALS_MS,
    ExponentialRetryPolicy,
    GroupRetryPolicy,
    SimpleSubscriptionData,
    SubscriptionGroupConfig,
)
from pocketmq.protocol.text import fastjson
from pocketmq.store.clock import VirtualClock


def table(folder: Path, *, enable_lmq: bool = False, **settings: Any) -> GroupTable:
    config = BrokerConfig(**settings)
    config.store.enable_lmq = enable_lmq
    return GroupTable(folder / "config", VirtualClock().now_ms, config)


@pytest.fixture
def groups(tmp_path: Path) -> GroupTable:
    return table(tmp_path)


def test_a_group_is_created_with_defaults_on_first_use(groups: GroupTable):
    assert groups.find("billing") is None
    created = groups.find_or_create("billing")
    assert created == SubscriptionGroupConfig(group_name="billing")
    assert groups.find_or_create("billing") is created
    assert groups.data_version.counter == 1


def test_creation_can_be_switched_off_but_for_system_groups(tmp_path: Path):
    groups = table(tmp_path, auto_create_subscription_group=False)
    assert groups.find_or_create("billing") is None
    assert groups.find_or_create("CID_RMQ_SYS_x") is not None
    closed = table(tmp_path, auto_create_subscription_group=False, enable_create_sys_group=False)
    assert closed.find_or_create("CID_RMQ_SYS_x") is None


@pytest.mark.parametrize("name", ["", " ", "a b", "a" * 121])
def test_5_x_creates_no_group_with_an_illegal_name(tmp_path: Path, name: str):
    assert table(tmp_path).find_or_create(name) is None
    assert table(tmp_path, emulate=4).find_or_create(name) is not None


def test_groups_of_light_queues_are_in_no_table(tmp_path: Path):
    groups = table(tmp_path, enable_lmq=True, auto_create_subscription_group=False)
    assert groups.find_or_create("%LMQ%g") == SubscriptionGroupConfig(group_name="%LMQ%g")
    assert groups.update(SubscriptionGroupConfig(group_name="%LMQ%g")) is None
    assert "%LMQ%g" not in groups.groups


def test_update_applies_attribute_changes(groups: GroupTable):
    groups.update(SubscriptionGroupConfig(group_name="g", attributes={"+priority.factor": "50"}))
    groups.update(SubscriptionGroupConfig(group_name="g", retry_max_times=3))
    assert groups.groups["g"].attributes == {"priority.factor": "50"}
    assert groups.groups["g"].retry_max_times == 3
    with pytest.raises(AttributeRefusedError, match="unsupported key: nope"):
        groups.update(SubscriptionGroupConfig(group_name="g", attributes={"+nope": "1"}))
    assert groups.delete("g") is True
    assert groups.delete("g") is False


def test_one_topic_can_be_forbidden_without_touching_another(groups: GroupTable):
    groups.set_forbidden("g", "a", forbidden=True)
    groups.set_forbidden("g", "b", forbidden=True)
    groups.set_forbidden("g", "a", forbidden=False)
    assert not groups.is_forbidden("g", "a")
    assert groups.is_forbidden("g", "b")
    counter = groups.data_version.counter
    groups.set_forbidden("g", "a", forbidden=False)
    assert groups.data_version.counter == counter
    assert fastjson.loads(groups.to_json())["forbiddenTable"] == {"g": {"b": 4}}


def test_pages_carry_the_forbidden_topics_of_their_groups(groups: GroupTable):
    groups.find_or_create("a-group")
    groups.set_forbidden("a-group", "t", forbidden=True)
    names = sorted(groups.groups)
    seen = groups.data_version.encode().decode()
    first = groups.page(None, 0, 3)
    assert list(first.subscription_group_table) == names[:3]
    assert first.data_version == groups.data_version
    last = groups.page(seen, names.index("a-group"), 1)
    assert last.forbidden_table == {"a-group": {"t": 4}}
    assert groups.page(seen, 3, 3).forbidden_table == {}


def test_the_table_is_loaded_from_its_file_with_retry_policy_and_subscriptions(tmp_path: Path):
    groups = table(tmp_path)
    policy = GroupRetryPolicy(type="EXPONENTIAL", exponential_retry_policy=ExponentialRetryPolicy(initial=7))
    subscriptions = [SimpleSubscriptionData(topic="t", expression_type="TAG", expression="*", version=3)]
    groups.update(
        SubscriptionGroupConfig(
            group_name="g", group_retry_policy=policy, subscription_data_set=subscriptions
        )
    )
    groups.set_forbidden("g", "t", forbidden=True)
    groups.persist()
    again = table(tmp_path)
    assert again.load() is True
    assert again.groups == groups.groups
    assert again.is_forbidden("g", "t")
    assert again.data_version == groups.data_version


def test_a_slave_copies_its_masters_groups(groups: GroupTable):
    config = SubscriptionGroupConfig(group_name="g")
    groups.replace_all({"g": config}, DataVersion(counter=9))
    assert groups.groups == {"g": config}
    assert groups.persist() is True


def test_default_retry_intervals_are_the_official_ones():
    # Recorded from CustomizedRetryPolicy of 5.5.0.
    assert (
        *(1000, 5000, 10000, 30000, 60000, 120000, 180000, 240000, 300000),
        *(360000, 420000, 480000, 540000, 600000, 1200000, 1800000, 3600000, 7200000),
    ) == DEFAULT_RETRY_INTERVALS_MS
