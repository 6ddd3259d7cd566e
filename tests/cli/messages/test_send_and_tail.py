"""`pocketmq send` and `tail`: their options, and what they print."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from click.testing import Result
from pocketmq.testing import EmbeddedServer, RocketMQ

from cli_runs import pocketmq
from waiting import wait_until

FAILED = 1
Run = Callable[..., Result]


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return request.node.name.replace("[", "_").rstrip("]")[:100]


def read(run: Run, topic: str, *words: str) -> str:
    """What tail prints of all messages; waits until a new topic is found."""
    deadline = time.monotonic() + 30
    while True:
        result = run("tail", topic, "--no-follow", *words)
        if result.exit_code == 0 or "no route" not in result.output or time.monotonic() > deadline:
            assert result.exit_code == 0, result.output
            return str(result.stdout)
        time.sleep(0.02)


def test_every_setting_of_a_message_arrives(run: Run, topic: str) -> None:
    sent = run(
        "send", topic, "hello", "--tag", "created", "--key", "order-7", "--key", "a b", "-p", "colour=red",
        "--flag", "5", "--queue", "1",
    )  # fmt: skip
    assert sent.exit_code == 0, sent.output
    assert sent.stdout.endswith(" queue 1 offset 0\n")
    seen = json.loads(read(run, topic, "--from", "first", "-o", "json"))
    assert seen["text"] == "hello"
    assert (seen["tags"], seen["keys"], seen["flag"]) == ("created", ["order-7", "a", "b"], 5)
    assert seen["properties"]["colour"] == "red"
    assert seen["message_id"] == sent.stdout.split()[0]
    assert (seen["topic"], seen["queue_id"], seen["queue_offset"]) == (topic, 1, 0)


def test_bodies_are_lines_of_a_pipe_lines_of_a_file_or_a_whole_file(
    run: Run, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"three\r\n\nfour")
    assert run("send", topic, "--queue", "0", stdin=b"one\n\ntwo\n").exit_code == 0
    assert run("send", topic, "--queue", "0", "-f", str(file)).exit_code == 0
    assert run("send", topic, "--queue", "0", "--whole", "-q", stdin=b"a\nb\n").stdout == ""
    assert read(run, topic, "--from", "first", "-o", "body") == "one\ntwo\nthree\nfour\na\nb\n\n"


def test_an_order_key_selects_one_queue_and_a_one_way_send_prints_nothing(run: Run, topic: str) -> None:
    sent = run("send", topic, "a", "b", "c", "--order-key", "order-7")
    assert len({line.split()[2] for line in sent.stdout.splitlines()}) == 1
    one_way = run("send", topic, "d", "--one-way", "--order-key", "order-7")
    assert (one_way.exit_code, one_way.output) == (0, "")
    deadline = time.monotonic() + 30
    while read(run, topic, "--from", "first", "-o", "body") != "a\nb\nc\nd\n":
        assert time.monotonic() < deadline


def test_a_delayed_message_arrives_later(topic: str) -> None:
    with EmbeddedServer(virtual_time=True) as server:
        run = partial(pocketmq, namesrv_addr=server.namesrv_addr)
        run("send", topic, "now", "--queue", "0")
        assert run("send", topic, "later", "--delay-level", "1", "--queue", "0").exit_code == 0
        assert read(run, topic, "--from", "first", "-o", "body") == "now\n"
        server.clock.advance("1s")
        assert read(run, topic, "--from", "first", "-o", "body") == "now\nlater\n"


def test_tail_begins_at_the_requested_position(run: Run, topic: str) -> None:
    run("send", topic, *"abcde", "--queue", "0")
    assert read(run, topic, "--from-start", "-o", "body") == "a\nb\nc\nd\ne\n"
    assert read(run, topic, "--from", "3", "-o", "body") == "d\ne\n"
    assert read(run, topic, "--from", "99") == ""
    assert read(run, topic, "--from", "last") == ""
    assert read(run, topic, "--from", "1h", "-c", "2", "-o", "body") == "a\nb\n"
    assert read(run, topic, "--from", "2020-01-31T12:00:00", "-o", "body", "-c", "1") == "a\n"
    assert read(run, topic, "--from", "first", "--queue", "1") == ""


def test_tags_are_filtered(run: Run, topic: str) -> None:
    for tag in ("x", "y", "z"):
        run("send", topic, f"of {tag}", "--tag", tag, "--queue", "0")
    assert read(run, topic, "--from", "first", "--tags", "x || z", "-o", "body") == "of x\nof z\n"


def test_a_group_continues_at_its_offset(run: Run, topic: str) -> None:
    run("send", topic, *"abcdef", "--queue", "0")
    read(run, topic, "--from", "first")
    first = run("tail", topic, "-g", f"{topic}_g", "--from", "first", "-c", "2", "-o", "body")
    then = run("tail", topic, "-g", f"{topic}_g", "-c", "4", "-o", "body")
    assert (first.stdout, then.stdout) == ("a\nb\n", "c\nd\ne\nf\n")


def test_bytes_that_are_no_text_are_sent_and_shown(run: Run, topic: str) -> None:
    run("send", topic, "--whole", stdin=b"\xff\x00")
    seen = json.loads(read(run, topic, "--from", "first", "-o", "json"))
    assert seen["text"] is None
    assert base64.b64decode(seen["body_base64"]) == b"\xff\x00"
    assert "\ufffd" in read(run, topic, "--from", "first")
    assert "born: " in read(run, topic, "--from", "first", "-o", "full")


@pytest.mark.parametrize("command", ["send {topic} x", "bench -t {topic}"], ids=["send", "bench"])
def test_a_refused_send_is_one_line_and_exit_code_1(
    run: Run, server: EmbeddedServer, topic: str, command: str
) -> None:
    rule = RocketMQ(server).faults.refuse(code="SEND_MESSAGE_V2", topic=topic, response="MESSAGE_ILLEGAL")
    result = run(*command.format(topic=topic).split())
    assert len(rule.hits) == 1
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (FAILED, "", 1), result.output


def test_what_a_terminal_would_obey_is_shown_and_a_message_is_one_line(run: Run, topic: str) -> None:
    body = "red \x1b[31m, \r\nline, é, \u202etxt"
    run("send", topic, "-q", "--queue", "0", "--property", "p=\x1b]0;title\x07", body)
    line = read(run, topic, "--from", "first")
    assert line == f"{topic} queue 0 offset 0: red \\x1b[31m, \\r\\nline, é, \\u202etxt\n"
    full = read(run, topic, "--from", "first", "-o", "full")
    assert "    p: \\x1b]0;title\\x07\n" in full
    assert "\x1b[31m" in read(run, topic, "--from", "first", "-o", "body")


@pytest.mark.parametrize(
    "command", ["tail {topic} --from first --no-follow", "admin printMsg -t {topic}"], ids=["tail", "admin"]
)
def test_a_reader_that_has_seen_enough_is_no_error(server: EmbeddedServer, topic: str, command: str) -> None:
    rocketmq = RocketMQ(server)
    rocketmq.topic(topic, queues=1)
    rocketmq.load({"messages": [{"topic": topic, "body": "x" * 1000}] * 300})
    words = f"{sys.executable} -m pocketmq.cli {command} -n {server.namesrv_addr}".format(topic=topic).split()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10)
        process.stdout.close()
        assert (process.wait(20), process.stderr.read()) == (0, b"")


def test_tail_leaves_no_group(run: Run, server: EmbeddedServer, topic: str) -> None:
    run("send", topic, "x", "-q")
    before = set(server.node.broker.groups.groups)
    read(run, topic, "--from", "first")
    assert set(server.node.broker.groups.groups) == before


def test_a_body_that_is_not_utf_8_is_sent_as_it_is(run: Run, server: EmbeddedServer, topic: str) -> None:
    assert run("send", topic, "-q", os.fsdecode(b"\xff\xfe")).exit_code == 0
    assert [message.body for message in RocketMQ(server).messages(topic)] == [b"\xff\xfe"]


@pytest.mark.usefixtures("ctrl_c_as_on_a_terminal")
def test_lines_of_a_slow_pipe_are_sent_as_they_arrive(server: EmbeddedServer, topic: str) -> None:
    sending = ("send", topic, "-q", "--one-way", "-n", server.namesrv_addr)
    words = [sys.executable, "-m", "pocketmq.cli", *sending]
    rocketmq = RocketMQ(server)
    rocketmq.topic(topic, queues=1)
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        for number in range(3):
            process.stdin.write(b"line %d\n" % number)
            process.stdin.flush()
            wait_until(lambda: len(rocketmq.messages(topic)) == number + 1, "the line is stored")  # noqa: B023
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 200_000])
def test_lines_of_any_length_are_whole(run: Run, server: EmbeddedServer, topic: str, size: int) -> None:
    lines = [b"x" * size, b"last"]
    assert run("send", topic, "--queue", "0", "-q", stdin=b"\n".join(lines)).exit_code == 0
    assert [message.body for message in RocketMQ(server).messages(topic)] == [line for line in lines if line]
