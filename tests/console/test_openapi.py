"""`/openapi.json` describes every member of every answer; the command line prints the same objects."""

import asyncio
import contextlib
import json
import runpy
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from pocketmq.client import LitePullConsumer, MessageQueue
from pocketmq.console.answers import JSON, OPERATIONS, Operation
from pocketmq.console.openapi import openapi
from pocketmq.console.values import Error, Health, NewFault, Sent
from pocketmq.testing import EmbeddedServer, RocketMQ
from pocketmq.testing.faults.rule_json import EFFECTS, known_words
from pocketmq.testing.server import stand_in_views  # noqa: F401  its views fill OPERATIONS

from cli_runs import pocketmq
from documents import ROOT
from testing_acts import RULES

from .conftest import Api


def operation(method: str, path: str) -> Operation:
    (found,) = (one for one in OPERATIONS if (one.method, one.path) == (method, path))
    return found


def is_described(value: Any, kind: Any) -> bool:
    """Whether each member of the value is one of the type, and all that must be there are; of several types, of one."""
    for one in kind if isinstance(kind, tuple) else (kind,):
        with contextlib.suppress(msgspec.ValidationError):
            if msgspec.to_builtins(msgspec.convert(value, one)) == value:
                return True
    return False


async def filled(server: EmbeddedServer, api: Api) -> dict[str, str]:
    """A server with something for each answer; values for the parameters of the addresses."""
    rocketmq = RocketMQ(server)
    topic = rocketmq.topic("orders", queues=2)
    sent = rocketmq.send(topic, "one", tags="a", keys="k", properties={"p": "v"}, queue_id=0)
    rocketmq.send(topic, b"\xff", queue_id=1)
    async with LitePullConsumer("billing", namesrv_addr=server.namesrv_addr, auto_commit=False) as consumer:
        consumer.subscribe(topic)
        read: list[object] = []
        while len(read) < 2:
            read += await consumer.poll(1000)
        await consumer.commit({MessageQueue(topic, "broker-a", 0): 1})
    for rule in RULES:
        api.post("/api/faults", rule)
    return {"topic": topic, "group": "billing", "message": sent.transaction_id or sent.msg_id}


def test_every_member_of_each_answer_is_described(server: EmbeddedServer, api: Api) -> None:
    given = asyncio.run(filled(server, api))
    asked = {
        "/api/topics/{topic}": [f"/api/topics/{given['topic']}"],
        "/api/topics/{topic}/messages": [f"/api/topics/{given['topic']}/messages"],
        "/api/explain": [f"/api/explain?group=billing&topic={given['topic']}"],
        "/api/ledger": [
            "/api/ledger",
            f"/api/ledger?group=billing&topic={given['topic']}",
            f"/api/ledger?message={given['message']}",
        ],
    }
    checked = 0
    for one in OPERATIONS:
        if one.method != "GET" or one.content != JSON or one.path == "/openapi.json":
            continue
        for address in asked.get(one.path, [one.path.replace("{group}", "billing")]):
            value = api.get(address)
            assert value not in ([], {}), address
            assert is_described(value, one.answer), (address, value)
            checked += 1
    assert checked > 12


@pytest.mark.parametrize(
    ("method", "path", "value"),
    [
        ("POST", "/api/topics", {"name": "made", "queues": 2, "perm": 6, "order": False}),
        ("PUT", "/api/topics/changed", {"queues": 3}),
        ("POST", "/api/topics/changed/messages", {"text": "x", "keys": ["a"], "delay_level": 1}),
        ("POST", "/api/faults", RULES[0]),
    ],
)
def test_what_is_read_and_what_is_refused_is_described(
    api: Api, rocketmq: RocketMQ, method: str, path: str, value: dict[str, Any]
) -> None:
    rocketmq.topic("changed")
    one = operation(method, path.replace("changed", "{topic}"))
    assert value.items() <= msgspec.to_builtins(msgspec.convert(value, one.body)).items()
    status, answer = api.ask(method, path, value)
    assert (status, is_described(answer, one.answer)) == (one.code, True), answer
    status, answer = api.ask(method, path, {**value, "colour": "red"})
    assert (status, is_described(answer, Error)) == (400, True), answer


@pytest.mark.parametrize("value", [{"status": "up", "more": 1}, {}, {"status": 1}])
def test_an_undescribed_member_is_found(value: dict[str, Any]) -> None:
    assert not is_described(value, Health)


def test_bodies_have_the_names_that_are_described() -> None:
    effects = known_words().effects
    assert set(effects) == set(EFFECTS)
    named = {word for words in effects.values() for word in words}
    assert named == set(NewFault.__struct_fields__) - {"effect"}
    assert len({(one.method, one.path) for one in OPERATIONS}) == len(OPERATIONS)


def test_the_page_is_made_of_what_is_served() -> None:
    writer = runpy.run_path(str(ROOT / "docs" / "reference.py"))
    assert writer["HTTP_PAGE"].read_text("utf-8") == writer["http_text"](), "run: make reference"


def test_the_command_line_prints_what_the_port_answers(server: EmbeddedServer, api: Api) -> None:
    given = asyncio.run(filled(server, api))
    api.ask("DELETE", "/api/faults")
    topic = given["topic"]
    for words, path in (
        ("topics --json", "/api/topics"),
        ("groups --json", "/api/groups"),
        (f"explain -g billing -t {topic} --json", f"/api/explain?group=billing&topic={topic}"),
    ):
        assert printed(server, words) == api.get(path), words
    lag = [one for one in api.get("/api/groups/billing/queues") if one["offset"] is not None]
    assert printed(server, f"lag -g billing -t {topic} --json") == lag
    messages = printed(server, f"tail {topic} --from first --no-follow --json")
    by_place = sorted(api.get(f"/api/topics/{topic}/messages"), key=lambda one: one["queue_id"])
    assert sorted(messages, key=lambda one: one["queue_id"]) == by_place
    (sent,) = printed(server, f"send {topic} x --json")
    assert is_described(sent, Sent)


def printed(server: EmbeddedServer, words: str) -> Any:
    result = pocketmq(*words.split(), namesrv_addr=server.namesrv_addr)
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return lines[0] if len(lines) == 1 and isinstance(lines[0], list) else lines


def test_a_generated_client_works(
    server: EmbeddedServer, api: Api, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from openapi_python_client.cli import app as generator  # half a second
    from typer.testing import CliRunner as TyperRunner

    description = tmp_path / "openapi.json"
    description.write_text(json.dumps(openapi()))
    made = TyperRunner().invoke(
        generator, ["generate", "--path", str(description), "--output-path", str(tmp_path / "made")]
    )
    assert made.exit_code == 0, made.output
    monkeypatch.syspath_prepend(tmp_path / "made")
    rocketmq = RocketMQ(server)
    rocketmq.send(rocketmq.topic("orders", queues=1), "hello", keys="k")
    import pocket_mq_client  # type: ignore[import-not-found]
    from pocket_mq_client.api.default import (  # type: ignore[import-not-found]
        get_api_topics,
        get_api_topics_topic_messages,
    )

    with pocket_mq_client.Client(base_url=server.admin_url) as client:
        assert [topic.name for topic in get_api_topics.sync(client=client)] == ["orders"]
        (message,) = get_api_topics_topic_messages.sync(quote("orders"), client=client)
        assert (message.text, message.keys, message.properties["KEYS"]) == ("hello", ["k"], "k")
