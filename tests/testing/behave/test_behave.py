"""`pocketmq behave` with real programs: what they do is in the report, and nothing of them is left."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pocketmq.testing.behave import stage as stage_file

from cli_runs import pocketmq, refusal

CLIENT = """
import asyncio, os, signal
from pocketmq.client import ConsumeFromWhere, Producer, PushConsumer, SendFailed

async def run():
    topic, group, role = (os.environ["BEHAVE_" + name] for name in ("TOPIC", "GROUP", "ROLE"))
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async def got(message):
        print("GOT", message.text if hasattr(message, "text") else "", flush=True)
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    polls = {"poll_name_server_interval": 100}  # a route that it gets while a broker is hidden is an old one soon
    async with Producer("p", send_msg_timeout=300, **polls) as producer, PushConsumer(
        group, got, subscription={topic: "*"}, consume_from_where=first, pull_time_delay_mills_when_exception=50,
        **polls
    ):
        while not ended.is_set():
            if role != "consumer":
                try:
                    await producer.send(topic, b"x")
                    print("SENT", flush=True)
                except SendFailed:
                    print("FAILED", flush=True)
            await asyncio.sleep(0.01)

asyncio.run(run())
"""


@pytest.fixture
def client(tmp_path: Path) -> tuple[str, ...]:
    path = tmp_path / "client.py"
    path.write_text(CLIENT)
    return sys.executable, str(path)


behave = partial(pocketmq, "behave")


def scenario(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(f"about: Mine.\n{text}")
    return str(path)


def played(result: Result, name: str = "mine") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)["scenarios"][name]["measures"]
    return found


@pytest.mark.slow
def test_refused_and_unanswered_sends_are_in_the_report(tmp_path: Path, client: tuple[str, ...]) -> None:
    steps = """
role: producer
steps:
  - until: {sent: 10}
  - fault: {effect: refuse, code: SEND_MESSAGE_V2, topic: "{topic}", response: SYSTEM_BUSY, times: 2}
  - until: {hits: 2}
  - fault: {effect: silence, execute: true, code: SEND_MESSAGE_V2, times: 1}
  - until: {hits: 3}
  - until: {sent: 10}
"""
    report = tmp_path / "report.json"
    words = (scenario(tmp_path, steps), "--json", "--name", "mine", "--save", str(report))
    result = behave(*words, "--output", str(tmp_path / "out"), "--", *client)
    assert result.exit_code == 0, result.output
    found = played(result)
    assert found["sends_refused"] == {"SYSTEM_BUSY": 2, "no answer": 1}
    assert found["sends_retried"]["SYSTEM_BUSY"] == 2
    assert found["hits"] == 3
    assert found["said"]["SENT"] >= 20
    assert found["sent"] >= 20
    assert 250 <= found["longest_send_gap_ms"] < 5000
    assert found["exit_codes"] == [0]
    assert (tmp_path / "out" / "mine-1.txt").read_text().startswith("SENT\n")
    assert json.loads(report.read_text())["client"] == "mine"
    compared = behave("--against", str(report), "--against", str(report))
    assert compared.exit_code == 0
    assert [line.split() for line in compared.stdout.splitlines()[:2]] == [
        ["mine:", "Mine."],
        ["mine", "mine"],
    ]


@pytest.mark.slow
def test_a_broker_that_is_restarted_loses_nothing(tmp_path: Path, client: tuple[str, ...]) -> None:
    steps = """
role: consumer
brokers: 2
name_servers: 2
before:
  - feed: 20
  - stop: n0
steps:
  - until: {delivered: all}
  - feed: {messages: 40, seconds: 1}
  - kill: b0
  - pause: 0.3
  - start: b0
  - start: n0
  - hide: b1
  - show: b1
  - slow: {broker: b1, seconds: 0.05}
  - slow: {broker: b1, seconds: 0}
  - until: {delivered: all}
"""
    result = behave(scenario(tmp_path, steps), "--json", "--", *client)
    assert result.exit_code == 0, result.output
    found = played(result)
    assert (
        found["delivered"] >= 60
    )  # more, if the kill cut the answer to a message that the bench then sent again
    assert found.get("lost", 0) == found.get("unread", 0) == 0
    assert found["said"]["GOT"] >= 20, (
        "it is ended when the last ones are delivered, perhaps before it handles them"
    )
    assert found["reconnects"] >= 1
    assert found["recovered_ms"] is not None


@pytest.mark.slow
def test_members_that_come_and_go_are_started_and_ended(tmp_path: Path, client: tuple[str, ...]) -> None:
    steps = """
role: consumer
slaves: 1
steps:
  - until: {joined: 1}
  - replicate
  - fault: {effect: delay, code: PULL_MESSAGE, seconds: 0.01, times: null}
  - start_program: 1
  - until: {joined: 2}
  - end_faults
  - end_program: 1
  - feed: 10
  - until: {delivered: all}
"""
    result = behave(scenario(tmp_path, steps), "--json", "--", *client)
    assert result.exit_code == 0, result.output
    found = played(result)
    assert found["exit_codes"] == [0, 0]
    assert found["rebalance_ms"] >= 0
    assert found["delivered"] == 10


@pytest.mark.slow
def test_what_was_not_reached_is_said_and_the_exit_code_is_1(tmp_path: Path) -> None:
    steps = "steps:\n  - until: {sent: 1, seconds: 0.2}\n"
    result = behave(scenario(tmp_path, steps), "--", "sleep", "60")
    assert result.exit_code == 1
    assert result.stderr == "pocketmq: mine: not reached: sent 1: 0 of 1 within 0.2 s\n"
    assert "not reached  sent 1: 0 of 1 within 0.2 s" in result.stdout


@pytest.mark.slow
def test_words_in_braces_are_replaced_and_a_program_may_end_by_itself(tmp_path: Path) -> None:
    steps = "role: ordered\nsteps:\n  - pause: 0.3\n"
    words = ("sh", "-c", "echo WORDS {namesrv} {grpc} {topic} {group} {role} $NAMESRV_ADDR; exit 7")
    result = behave(scenario(tmp_path, steps), "--json", "--output", str(tmp_path), "--", *words)
    assert result.exit_code == 0
    assert played(result)["exit_codes"] == [7]
    address, grpc, *rest = (tmp_path / "mine-1.txt").read_text().split()[1:]
    assert grpc.startswith("127.0.0.1:")
    assert grpc != address
    assert rest == ["BehaveTopic", "BehaveGroup", "ordered", address]


@pytest.mark.slow
def test_a_program_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_file, "END_SECONDS", 0.2)
    stubborn = "trap '' TERM; echo READY; exec sleep 60"
    began = time.monotonic()
    result = behave(scenario(tmp_path, "steps: [pause: 0.5]\n"), "--json", "--", "sh", "-c", stubborn)
    assert result.exit_code == 1
    assert "mine: the program did not end after SIGTERM" in result.stderr
    found = played(result)
    assert (found["killed"], found["exit_codes"], found["said"]) == (1, [137], {"READY": 1})
    assert time.monotonic() - began < 20


@pytest.mark.slow
@pytest.mark.usefixtures("ctrl_c_as_on_a_terminal")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_programs_too(tmp_path: Path, number: signal.Signals) -> None:
    path = scenario(tmp_path, "programs: 2\nsteps: [pause: 60]\n")
    words = ("behave", path, "--output", str(tmp_path), "--", "sh", "-c", "echo PID $$; exec sleep 100")
    process = subprocess.Popen([sys.executable, "-m", "pocketmq.cli", *words], start_new_session=True)
    outputs = [tmp_path / f"mine-{index}.txt" for index in (1, 2)]
    deadline = time.monotonic() + 20
    while not all(one.exists() and one.read_text().endswith("\n") for one in outputs):
        assert time.monotonic() < deadline, "the programs were not started"
        time.sleep(0.02)
    process.send_signal(number)
    assert process.wait(20) in (128 + number, 130)
    for output in outputs:
        with pytest.raises(ProcessLookupError):
            os.kill(int(output.read_text().split()[1]), 0)


def test_a_program_that_ends_by_itself_is_not_waited_for(tmp_path: Path) -> None:
    path = scenario(
        tmp_path, "steps: [until: {sent: 1, seconds: 600}, pause: 600, until: {sent: 2, seconds: 600}]\n"
    )
    result = behave(path, "--json", "--", "sh", "-c", "echo no such class; exit 3")
    assert result.exit_code == 1
    end = "when the program ended with exit code 3: no such class"
    assert played(result)["not_reached"] == [f"sent 1: 0 of 1 {end}", f"sent 2: 0 of 2 {end}"]
    assert f"pocketmq: mine: not reached: sent 1: 0 of 1 {end}" in result.stderr


# -- mistakes: one line, exit code 2


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        ("[kill: b7]", "steps 1: kill: a broker must be one of b0, got 'b7'"),
        ("[fault: {effect: dance}]", "steps 1: fault: effect must be one of refuse,"),
        ("[fault: {effect: refuse, topics: x}]", "steps 1: fault: refuse has no 'topics'; allowed are"),
        ("[start: b0]", "steps 1: start: broker b0 is already running"),
    ],
)
def test_a_step_that_cannot_be_done_is_named(tmp_path: Path, steps: str, complaint: str) -> None:
    result = behave(scenario(tmp_path, f"programs: 0\nsteps: {steps}\n"), "--", "true")
    assert refusal(result).startswith(f"pocketmq: scenario mine: {complaint}")


def test_a_setting_that_no_broker_has_is_named(tmp_path: Path) -> None:
    result = behave(scenario(tmp_path, "settings: {brokerNam: x}\nsteps: []\n"), "--", "true")
    assert "brokerNam" in refusal(result)


def test_the_scenarios_are_listed_with_what_they_are_about() -> None:
    result = behave("--list")
    assert result.exit_code == 0
    listed = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
    assert ["send-busy", "all", "The broker refuses five sends with SYSTEM_BUSY."] in listed
    assert "lock-refused" in [name for name, clients, _ in listed if clients == "remoting"]
