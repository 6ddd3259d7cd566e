"""`pocketmq topics`, `groups`, `lag` and `clients`: what a cluster holds, for people and as JSON."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click
import pytest
from pocketmq.cli.inspect.clients import client_rows
from pocketmq.cli.inspect.cluster_names import complete_groups, complete_topics
from pocketmq.cli.inspect.groups import group_rows
from pocketmq.cli.inspect.lag import lag_rows
from pocketmq.cli.inspect.topics import topic_rows
from pocketmq.cli.main import main
from pocketmq.cli.output import show, table
from pocketmq.client import AdminClient, ClientError, LitePullConsumer, Message, Producer
from pocketmq.console.values import TopicQueue
from pocketmq.testing import EmbeddedServer

from cli_runs import pocketmq, refusal

SENT = 5


@asynccontextmanager
async def consumed(server: EmbeddedServer, group: str) -> AsyncIterator[AdminClient]:
    """A topic of five messages; a member of the group has read and committed all but two of them."""
    topic = f"T-{group}"
    address = server.namesrv_addr
    async with (
        AdminClient(namesrv_addr=address) as admin,
        Producer("p", namesrv_addr=address) as producer,
        LitePullConsumer(group, namesrv_addr=address, auto_commit=False) as consumer,
    ):
        for _ in range(SENT):
            await producer.send(Message(topic, b"x"), queue_id=0)
        consumer.subscribe(topic)
        messages: list[Any] = []
        while len(messages) < SENT:
            messages += await consumer.poll(1000)
        await consumer.commit({messages[2].queue: 3})
        yield admin


async def test_lag_is_counted_queue_by_queue_with_the_member_that_reads(server: EmbeddedServer) -> None:
    async with consumed(server, "lagging") as admin:
        row = next(row for row in await lag_rows(admin, "lagging", None) if row.topic == "T-lagging")
        assert (row.queue_id, row.offset, row.max_offset, row.lag) == (0, 3, SENT, 2)
        members = (await admin.consumer_connections("lagging")).connection_set
        assert row.held_by == [members[0].client_id]
        assert "lagging" in {row.group for row in await lag_rows(admin, None, None)}
        with pytest.raises(ClientError, match="group nobody has no offsets"):
            await lag_rows(admin, "nobody", None)


async def test_groups_have_members_topics_and_lag(server: EmbeddedServer) -> None:
    async with consumed(server, "listed") as admin:
        row = next(row for row in await group_rows(admin) if row.name == "listed")
        assert (len(row.members), row.mode, row.lag) == (1, "CLUSTERING", 2)
        assert row.offsets["T-listed"]["0"] == 3
        assert row.subscriptions["T-listed"] == "*"
    async with AdminClient(namesrv_addr=server.namesrv_addr) as admin:
        row = next(row for row in await group_rows(admin) if row.name == "listed")
        assert (row.members, row.mode) == ([], None)
        assert "TOOLS_CONSUMER" not in {row.name for row in await group_rows(admin)}


async def test_topics_have_queues_and_messages_and_system_topics_are_left_out(server: EmbeddedServer) -> None:
    async with consumed(server, "topical") as admin:
        rows = {row.name: row for row in await topic_rows(admin)}
        assert (rows["T-topical"].queues, rows["T-topical"].messages) == (4, SENT)
        assert rows["T-topical"].last_stored_ms is not None
        assert not any(name.startswith("%") or name.endswith("REPLY_TOPIC") for name in rows)
        assert "TBW102" in {row.name for row in await topic_rows(admin, with_system=True)}


async def test_clients_are_consumers_and_producers(server: EmbeddedServer) -> None:
    async with consumed(server, "connected") as admin:
        rows = {(row.role, row.group): row for row in await client_rows(admin)}
        assert rows["consumer", "connected"].language == "PYTHON"
        assert rows["producer", "p"].version == rows["consumer", "connected"].version
        assert "CLIENT_INNER_PRODUCER" not in {group for _, group in rows}


@pytest.mark.parametrize("command", ["topics", "groups", "lag", "clients"])
def test_json_is_one_list_also_of_an_empty_server(command: str) -> None:
    with EmbeddedServer() as empty:
        ran = pocketmq(command, "--json", namesrv_addr=empty.namesrv_addr)
        assert (ran.exit_code, json.loads(ran.stdout)) == (0, [])
        assert pocketmq(command, namesrv_addr=empty.namesrv_addr).stdout.startswith("no ")


@pytest.mark.parametrize(
    "command",
    [
        "topics",
        "groups",
        "lag",
        "clients",
        "tail T",
        "explain -g g -t T",
        "send T x",
        "bench",
        "bench end-to-end",
        "admin topicList",
    ],
)
def test_nobody_there_is_one_line_and_exit_code_3(command: str) -> None:
    said = refusal(pocketmq(*command.split(), namesrv_addr="127.0.0.1:1"), 3)
    assert "cannot connect to 127.0.0.1:1" in said
    assert "pocketmq serve" in said or command.startswith("admin")


async def test_watch_looks_until_it_is_cancelled(capsys: pytest.CaptureFixture[str]) -> None:
    looks = 0

    async def look() -> list[TopicQueue]:
        nonlocal looks
        looks += 1
        if looks > 3:
            raise ClientError("gone")
        return [TopicQueue("b", looks, 0, 0)]

    with pytest.raises(ClientError):
        await show(look, lambda rows: "", as_json=True, watch_seconds=0.001)
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)[0]["queue_id"] for line in lines] == [1, 2, 3]


def test_a_table_has_numbers_to_the_right_and_a_dash_for_nothing() -> None:
    assert table(("NAME", "LAG"), [("a", 5), ("long", None)]) == "NAME  LAG\na       5\nlong    -"


def test_tab_completes_topics_and_groups_and_is_silent_without_a_server(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = click.Context(main)
    option = click.Option(["--x"])
    monkeypatch.setenv("NAMESRV_ADDR", server.namesrv_addr)
    assert pocketmq("send", "Completed", "x", namesrv_addr=server.namesrv_addr).exit_code == 0
    assert complete_topics(context, option, "Compl") == ["Completed"]
    assert complete_groups(context, option, "TOOLS") == []
    monkeypatch.setenv("NAMESRV_ADDR", "127.0.0.1:1")
    assert complete_topics(context, option, "") == []
