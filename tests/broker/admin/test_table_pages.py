"""The tables of topics (21) and groups (201) in pages. The first page and the whole table are compared in the recorded
conversation `administration`; the next pages name an edition of the table that only its broker has."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.requests.group import GetAllSubscriptionGroupConfig
from pocketmq.protocol.requests.topic import GetAllTopicConfig

from broker_fakes import ask

Page = Callable[..., Any]


def topics(at: int | None = None, version: str | None = None, count: int | None = None) -> GetAllTopicConfig:
    return GetAllTopicConfig(topic_seq=at, data_version=version, max_topic_num=count)


def groups(
    at: int | None = None, version: str | None = None, count: int | None = None
) -> GetAllSubscriptionGroupConfig:
    return GetAllSubscriptionGroupConfig(group_seq=at, data_version=version, max_group_num=count)


@pytest.mark.parametrize(
    ("page", "table", "total"),
    [(topics, "topicConfigTable", "totalTopicNum"), (groups, "subscriptionGroupTable", "totalGroupNum")],
    ids=["topics", "groups"],
)
class TestPages:
    async def test_they_follow_each_other_until_the_total(
        self, broker: Broker, page: Page, table: str, total: str
    ) -> None:
        for number in range(5):
            broker.groups.update(SubscriptionGroupConfig(group_name=f"g{number}"))
        whole = await ask(broker, page())
        version = json.dumps(whole.json["dataVersion"])
        names: list[str] = []
        while len(names) < int(whole.fields[total]):
            names += sorted((await ask(broker, page(len(names), version, 4))).json[table])
        assert names == sorted(whole.json[table])
        assert (await ask(broker, page(9999, version, 4))).json[table] == {}

    async def test_4_9_knows_none(self, broker4: Broker, page: Page, table: str, total: str) -> None:
        answer = await ask(broker4, page(0, None, 1))
        assert answer.fields == {}
        assert len(answer.json[table]) == len(broker4.topics if page is topics else broker4.groups)
