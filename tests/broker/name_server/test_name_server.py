"""The name server over its socket: every answer is compared with those of the official programs.

The conversation and its recordings are in `tests/golden/name_server_dialogue.py`. What is left out of the
comparison, and why, is in `EXCEPTIONS`; the order of lists is not compared (Java makes them of hash maps).
"""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.errors import Refusal
from pocketmq.broker.name_server import kv_config
from pocketmq.protocol.bodies.registration import RegisterBrokerBody, TopicConfigAndMappingSerializeWrapper
from pocketmq.protocol.bodies.routes import BrokerData, QueueData
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.name_server import (
    DeleteKvConfig,
    GetBrokerMemberGroup,
    GetKvConfig,
    GetKvListByNamespace,
    GetNamesrvConfig,
    GetRouteInfoByTopic,
    PutKvConfig,
    RegisterBroker,
    UpdateNamesrvConfig,
)
from pocketmq.protocol.text import fastjson
from pocketmq.protocol.wire.schema import Request
from pocketmq.store.files.json_file import JsonFile

from golden.name_server_dialogue import play, recorded
from name_server_fakes import RunningNameServer
from waiting import until

EXCEPTIONS = {
    "unknown code": "4.9.7 does not answer; we answer 3 like 5.x",
    "route without a topic": "a missing field is refused, not looked up under the name null",
    "delete without a topic": "a missing field is refused",
    "add without a name": "a missing field is refused",
    "put without a key": "a missing field is refused with another text",
    "put without a value": "a missing field is refused, no null is stored",
    "settings": "the values are ours; `test_keys.py` compares the keys",
}


BROKER = RegisterBroker(
    broker_name="b", broker_addr="10.0.0.1:1", cluster_name="c", ha_server_addr="10.0.0.1:2", broker_id=0
)


@pytest.fixture(params=[5, 4], ids=["5.x", "4.x"])
async def name_server(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RunningNameServer]:
    config = NameServerConfig(kv_config_path=str(tmp_path / "namesrv" / "kvConfig.json"))
    server = RunningNameServer(request.param, config)
    await server.start()
    yield server
    await server.stop()


async def ask(
    name_server: RunningNameServer, request: Request[Any], body: bytes | None = None
) -> tuple[dict[str, str], bytes]:
    """Header fields and body of the answer. Raises `Refusal` for a refusal."""
    connection = await name_server.server.connect(name_server.address)
    command, _ = await connection.call(request, body, timeout_seconds=5)
    connection.close()
    return command.fields or {}, bytes(command.body or b"")


def sorted_lists(value: Any) -> Any:
    """The same JSON with its lists in one order; integer keys stay integers, so the dialect still shows."""
    if isinstance(value, dict):
        return {key: sorted_lists(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((sorted_lists(item) for item in value), key=repr)
    return value


def comparable(answer: dict[str, Any] | None) -> Any:
    if answer is None or "closed" in answer:
        return answer
    remark = answer["remark"]
    if remark is not None and ("Exception" in remark or "Error" in remark):
        remark = "an exception"
    body = answer["body"]
    shown = sorted_lists(fastjson.loads(body)) if body.startswith("{") else body
    return {**answer, "remark": remark, "body": shown}


def is_escaped(answer: dict[str, Any] | None) -> bool:
    return answer is not None and "\\u" in answer.get("body", "")


async def test_every_answer_is_the_official_one(name_server: RunningNameServer) -> None:
    spoken = await play("127.0.0.1", name_server.port, name_server.line, settle_seconds=0.03)
    expected = recorded(name_server.line)
    assert [one["step"] for one in spoken] == [one["step"] for one in expected]
    for ours, official in zip(spoken, expected, strict=True):
        if ours["step"] in EXCEPTIONS:
            continue
        assert comparable(ours["answer"]) == comparable(official["answer"]), ours["step"]
        assert is_escaped(ours["answer"]) == is_escaped(official["answer"]), ours["step"]
        assert sorted_lists(ours["heard"]) == sorted_lists(official["heard"]), ours["step"]


async def test_changed_settings_are_returned_and_kept(name_server: RunningNameServer, tmp_path: Path) -> None:
    path = tmp_path / "namesrv.properties"
    path.write_text("# ours\nproductEnvName=center\n")
    name_server.config.config_store_path = str(path)
    text = "productEnvName=d\\u00e9mo\nlistenPort=9\norderMessageEnable=maybe\nserverWorkerThreads=5\nodd=1\n"
    await ask(name_server, UpdateNamesrvConfig(), text.encode())
    _, body = await ask(name_server, GetNamesrvConfig())
    returned = dict(line.split("=", 1) for line in body.decode().splitlines())
    assert returned["productEnvName"] == "démo"
    assert returned["listenPort"] == "9"
    assert returned["orderMessageEnable"] == "false"
    assert returned["serverWorkerThreads"] == "5"
    assert "odd" not in returned
    lines = "listenPort=9", "orderMessageEnable=false", "serverWorkerThreads=5"
    kept = "\n".join(("# ours", "productEnvName=d\\u00e9mo", *lines, ""))
    assert path.read_text() == kept


async def test_codes_of_the_5_line_are_unknown_to_the_4_line() -> None:
    server = RunningNameServer(4)
    await server.start()
    with pytest.raises(Refusal, match=" request type 901 not supported") as refused:
        await ask(server, GetBrokerMemberGroup(cluster_name="c", broker_name="b"))
    assert refused.value.code == 3
    await server.stop()


async def test_key_value_settings_outlast_a_restart(name_server: RunningNameServer) -> None:
    await ask(name_server, PutKvConfig(namespace="n", key="k", value="wörth"))
    await ask(name_server, PutKvConfig(namespace="n", key="gone", value="x"))
    await ask(name_server, DeleteKvConfig(namespace="n", key="gone"))
    await name_server.stop()
    path = Path(name_server.config.kv_config_path)
    assert path.read_text(encoding="utf-8") == '{"configTable":{"n":{"k":"wörth"}}}'
    await name_server.start()
    fields, _ = await ask(name_server, GetKvConfig(namespace="n", key="k"))
    assert fields == {"value": "wörth"}
    _, body = await ask(name_server, GetKvListByNamespace(namespace="n"))
    assert body.decode() == '{"table":{"k":"wörth"}}'


async def test_settings_put_together_are_written_together_and_each_answer_waits(
    name_server: RunningNameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each put wrote and forced the whole file on the loop: 300 of them held others up for more than a second."""
    written = []
    save, all_are_put = JsonFile.save, threading.Event()

    def slow(file: JsonFile, content: Iterable[bytes]) -> None:
        assert all_are_put.wait(10)  # the loop goes on meanwhile
        written.append(b"".join(content))
        save(file, written[-1])

    monkeypatch.setattr(JsonFile, "save", slow)
    puts = [PutKvConfig(namespace="n", key=str(number), value="v") for number in range(50)]
    answers = [asyncio.create_task(ask(name_server, put)) for put in puts]
    await until(lambda: len(name_server.state.kv.list("n") or ()) == 50)
    assert not any(answer.done() for answer in answers)
    all_are_put.set()
    await asyncio.gather(*answers)
    assert len(written) == 2
    assert json.loads(written[-1])["configTable"]["n"] == {str(number): "v" for number in range(50)}


async def test_a_setting_that_cannot_be_written_is_not_acknowledged(
    name_server: RunningNameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: JsonFile, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(JsonFile, "save", full)
        with pytest.raises(Refusal, match=r"the disk refuses kvConfig\.json"):
            await ask(name_server, PutKvConfig(namespace="n", key="k", value="1"))
    await ask(name_server, PutKvConfig(namespace="n", key="k", value="2"))


async def test_settings_have_a_share_of_memory(
    name_server: RunningNameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kv_config, "MAX_CHARACTERS", 1000)
    await ask(name_server, PutKvConfig(namespace="n", key="k", value="x" * 500))
    await ask(name_server, PutKvConfig(namespace="n", key="k", value="y" * 500))
    with pytest.raises(Refusal, match="more than 1000 characters"):
        await ask(name_server, PutKvConfig(namespace="n", key="l", value="z" * 500))
    await ask(name_server, DeleteKvConfig(namespace="n", key="k"))
    await ask(name_server, PutKvConfig(namespace="n", key="l", value="z" * 500))


async def test_broker_without_heartbeat_loses_route_and_connection(name_server: RunningNameServer) -> None:
    connection = await name_server.server.connect(name_server.address)
    topics = {name: {"topicName": name} for name in ("T", "U")}
    body = fastjson.dumps({"topicConfigSerializeWrapper": {"topicConfigTable": topics}})
    await connection.call(BROKER, body, timeout_seconds=5)
    await ask(name_server, GetRouteInfoByTopic(topic="T"))
    name_server.clock.advance(120_001)
    name_server.state.scan()
    with pytest.raises(Refusal, match="No topic route info in name server for the topic: T"):
        await ask(name_server, GetRouteInfoByTopic(topic="T"))
    assert connection.closed


@pytest.mark.parametrize(
    ("has_brokers", "creates", "words"),
    [
        (False, False, "no broker is registered here"),
        (True, True, "the first send creates it"),
        (True, False, "autoCreateTopicEnable=false"),
    ],
)
async def test_the_log_says_once_why_a_topic_has_no_route(
    name_server: RunningNameServer,
    caplog: pytest.LogCaptureFixture,
    has_brokers: bool,
    creates: bool,
    words: str,
) -> None:
    caplog.set_level("INFO", "pocketmq.name_server")
    server = name_server.state
    if has_brokers:
        server.routes.brokers["b"] = BrokerData()
    if creates:
        server.routes.topics["TBW102"] = {"b": QueueData()}
    for topic in ("T", "T", "%RETRY%g", "TBW102"):
        server.say_why_no_route(topic)
    assert len(caplog.messages) == 1
    assert words in caplog.messages[0]


async def test_a_long_registration_is_read_in_slices(name_server: RunningNameServer) -> None:
    names = [f"Topic{number:06}" + "x" * 40 for number in range(15_000)]
    topics = {name: TopicConfig(topic_name=name, write_queue_nums=7) for name in names}
    wrapper = TopicConfigAndMappingSerializeWrapper(topic_config_table=topics)
    body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper).encode()
    assert len(body) > fastjson.MAX_REQUEST_BYTES
    connection = await name_server.server.connect(name_server.address)
    await connection.call(BROKER, body, timeout_seconds=20)
    assert len(name_server.state.routes.topics) == 15_000
    assert name_server.state.routes.topics[names[-1]]["b"].write_queue_nums == 7
    with pytest.raises(Refusal, match="BodyError"):
        await connection.call(BROKER, body[:-1], timeout_seconds=20)


async def test_a_setting_put_while_the_file_is_written_is_written_at_the_stop(
    name_server: RunningNameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, is_stopping = JsonFile.save, threading.Event()

    def slow(file: JsonFile, content: Iterable[bytes]) -> None:
        assert is_stopping.wait(10)
        save(file, content)

    monkeypatch.setattr(JsonFile, "save", slow)
    state = name_server.state
    for key in ("a", "b"):
        state.kv.put("n", key, "v")
    threading.Timer(0.05, is_stopping.set).start()
    state.stop()
    stored = json.loads(Path(name_server.config.kv_config_path).read_bytes())
    assert stored["configTable"]["n"] == {"a": "v", "b": "v"}
