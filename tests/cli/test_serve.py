"""`pocketmq serve` as scripts use it: the first line, the exit codes, the files that remain.

Real processes on free ports of the loopback interface; tests wait only for a line or for an exit.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pocketmq.cli.serve import serve
from pocketmq.testing.remote import RemoteRocketMQ

from processes import python

FREE_PORTS = ("--port", "0", "--namesrv-port", "0")
END_SECONDS = 20


@contextmanager
def serving(*words: str, folder: Path, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """A server in `folder`; it is always ended after the test."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pocketmq.cli", "serve", *words],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def first_line(process: "subprocess.Popen[str]") -> tuple[str, int]:
    """(host, port) of the line that is printed once clients can connect."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("NAMESRV_ADDR="), process.communicate()
    host, _, port = line.strip().removeprefix("NAMESRV_ADDR=").partition(":")
    return host, int(port)


def end(process: "subprocess.Popen[str]", number: int = signal.SIGTERM) -> tuple[int, str, str]:
    """(exit code, rest of stdout, stderr) after a signal."""
    process.send_signal(number)
    rest, errors = process.communicate(timeout=END_SECONDS)
    return process.returncode, rest, errors


@contextmanager
def handled(number: signal.Signals, handler: signal.Handlers) -> Iterator[None]:
    """Programs started inside inherit an ignored signal."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def refusal(process: "subprocess.Popen[str]") -> str:
    """Standard error of a server that does not start: one line."""
    out, errors = process.communicate(timeout=END_SECONDS)
    assert (process.returncode, out, errors.count("\n")) == (2, "", 1), errors
    assert errors.startswith("pocketmq: ")
    return errors


def invoke(*words: str) -> Result:
    return CliRunner().invoke(serve, words)


# -- start and stop


def test_the_broker_as_a_module_is_the_same_program(tmp_path: Path) -> None:
    ran = python("-m", "pocketmq.broker", "--bogus", cwd=tmp_path, timeout=END_SECONDS)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("pocketmq serve: No such option '--bogus'")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_address_is_the_first_line_and_a_signal_ends_cleanly(tmp_path: Path, number: int) -> None:
    with handled(signal.SIGHUP, signal.SIG_DFL), serving(*FREE_PORTS, folder=tmp_path) as process:
        address = first_line(process)
        socket.create_connection(address, timeout=5).close()
        code, rest, errors = end(process, number)
    assert (code, rest) == (0, "")
    assert "Traceback" not in errors
    assert f"store: {tmp_path / 'pocketmq-store'}" in errors
    assert (tmp_path / "pocketmq-store" / "checkpoint").exists()
    assert not (tmp_path / "pocketmq-store" / "abort").exists()


def test_a_second_signal_ends_a_stop_that_waits(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers the unregistration
        namesrv = f"127.0.0.1:{silent.getsockname()[1]}"
        words = (*FREE_PORTS, "--namesrv", namesrv, "--set", "registerBrokerTimeoutMills=100")
        with serving(*words, folder=tmp_path) as process:
            first_line(process)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)  # at once: the same, by another way
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.5)
            code, _, errors = end(process, signal.SIGINT)
    assert code == 128 + signal.SIGINT
    assert "ended by a second signal" in errors


def test_under_nohup_a_closed_terminal_ends_nothing(tmp_path: Path) -> None:
    with (
        handled(signal.SIGHUP, signal.SIG_IGN),
        serving(*FREE_PORTS, "--ephemeral", folder=tmp_path) as process,
    ):
        address = first_line(process)
        process.send_signal(signal.SIGHUP)
        socket.create_connection(address, timeout=5).close()
        assert end(process)[0] == 0


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_a_closed_standard_stream_does_not_matter(tmp_path: Path, closed: str) -> None:
    words = f"exec {sys.executable} -m pocketmq.cli serve --ephemeral --port 0 --namesrv-port 0 {closed}"
    with subprocess.Popen(["sh", "-c", words], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        address = first_line(process)
        socket.create_connection(address, timeout=5).close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS) == 0


def test_ephemeral_store_is_removed_at_exit(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with serving(*FREE_PORTS, "--ephemeral", folder=tmp_path, TMPDIR=str(temporary)) as process:
        first_line(process)
        assert len(list(temporary.iterdir())) == 1
        assert end(process)[0] == 0
    assert list(temporary.iterdir()) == []
    assert list(tmp_path.iterdir()) == [temporary]


def test_broker_alone_registers_at_another_name_server(tmp_path: Path) -> None:
    with serving(*FREE_PORTS, "--store", "one", folder=tmp_path) as one:
        host, port = first_line(one)
        words = ("--no-namesrv", "--port", "0", "--set", "brokerName=broker-b", "--store", "two")
        with serving(*words, folder=tmp_path, NAMESRV_ADDR=f"{host}:{port}") as two:
            assert first_line(two) == (host, port)
            assert end(two)[0] == 0
        assert "broker-b" in end(one)[2], "the name server has seen it"


# -- errors of the user: one line, exit code 2


def test_store_in_use_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    with serving(*FREE_PORTS, folder=tmp_path) as first:
        first_line(first)
        # A port beside the chosen one may be taken, which is a warning of its own.
        with serving(*FREE_PORTS, "--log-level", "error", folder=tmp_path) as second:
            assert "in use by another process" in refusal(second)


@pytest.mark.parametrize("option", ["--port", "--namesrv-port"])
def test_used_port_is_one_line_and_exit_code_2(tmp_path: Path, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = (*FREE_PORTS, option, str(port), "--ephemeral", "--log-level", "error")
        with serving(*words, folder=tmp_path, TMPDIR=str(tmp_path)) as process:
            assert f"127.0.0.1:{port}" in refusal(process)
    assert list(tmp_path.iterdir()) == [], "the temporary store is removed here too"


def test_broker_without_any_name_server_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    result = invoke("--no-namesrv", "--port", "0")
    assert result.exit_code == 2
    assert "--no-namesrv leaves no name server to register at" in result.stderr


# -- --print-config


def printed(*words: str) -> dict[str, list[str]]:
    result = invoke("--print-config", *words)
    assert result.exit_code == 0, result.output
    section, rows = "", {}
    for line in result.stdout.splitlines()[1:]:
        if line.startswith("# "):
            section = line
        else:
            rows[f"{section[2:]}: {line.split()[0]}"] = line.split()
    return rows


def test_print_config_shows_key_value_default_verdict_and_reason(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("accessMessageInMemoryMaxRatio=12\nsendMessageThreadPoolNums=99\n", encoding="utf-8")
    rows = printed("-c", str(conf), "--port", "7", "--namesrv-port", "8", "--set", "emulate=4.9")
    assert rows["broker: listenPort"][1:4] == ["7", "10911", "honoured"]
    assert rows["name server: listenPort"][1:4] == ["8", "9876", "honoured"]
    assert rows["broker: accessMessageInMemoryMaxRatio"][1:4] == ["12", "40", "honoured"]
    assert rows["broker: sendMessageThreadPoolNums"][1] == "99"
    assert rows["broker: sendMessageThreadPoolNums"][3] == "harmless"
    assert rows["broker: coldDataFlowControlEnable"][3] == "unsupported"
    assert rows["broker: registerBrokerTimeoutMills"][1:4] == ["6000", "6000", "honoured"]
    assert all(len(row) > 4 for row in rows.values()), "each has a reason"


def test_print_config_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not any(key.startswith("name server") for key in printed("--no-namesrv", "--namesrv", "a:1"))
    assert list(tmp_path.iterdir()) == []


def test_options_override_set_words_and_set_words_override_the_file(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("listenPort=1\nbrokerIP1=127.0.0.1\nregionId=file\n", encoding="utf-8")
    rows = printed("-c", str(conf), "--set", "listenPort=2", "--set", "regionId=word", "--port", "3")
    assert rows["broker: listenPort"][1] == "3"
    assert rows["broker: regionId"][1] == "word"
    assert printed("--store", "/x/s")["name server: kvConfigPath"][1] == "/x/s/namesrv/kvConfig.json"


# -- the program


@pytest.mark.parametrize("level", ["DEBUG", "Warning", "error"])
def test_log_level_may_be_written_in_any_case(level: str) -> None:
    assert invoke("--log-level", level, "--print-config").exit_code == 0


def test_ports_file_has_all_addresses_as_json(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"
    with serving(*FREE_PORTS, "--ports-file", str(file), folder=tmp_path) as process:
        host, port = first_line(process)
        ports = json.loads(file.read_text())
        socket.create_connection(("127.0.0.1", int(ports["broker"].rpartition(":")[2])), timeout=5).close()
        assert end(process)[0] == 0
    assert ports["namesrv"] == f"{host}:{port}"
    assert (ports["admin"], ports["grpc"]) == (None, None)
    assert not file.exists()


def test_a_ports_file_of_an_earlier_run_is_gone_before_the_start(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"
    file.write_text("of an earlier run")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ("--port", str(taken.getsockname()[1]), "--namesrv-port", "0", "--ports-file", str(file))
        with serving(*words, folder=tmp_path) as process:
            assert process.wait(END_SECONDS) == 2
    assert not file.exists()


def test_unclean_stop_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    """The next start recovers the store; who stopped it must not read success."""
    (tmp_path / "load.yaml").write_text("messages: [{topic: T, body: hello}]")
    with serving(*FREE_PORTS, "--store", "s", "--load", "load.yaml", folder=tmp_path) as process:
        first_line(process)
        (tmp_path / "s" / "checkpoint").unlink()
        (tmp_path / "s" / "checkpoint").mkdir()
        code, _, errors = end(process)
    assert code == 1
    assert "Traceback" not in errors
    assert errors.count("did not stop cleanly, the next start recovers it: ") == 1


def test_messages_are_loaded_into_named_topics_before_the_first_line_is_printed(tmp_path: Path) -> None:
    (tmp_path / "state.yml").write_text("messages: [{topic: orders, body: order 17, queue_id: 5}]\n")
    words = ("--ephemeral", "--topic", "orders:6", "--load", "state.yml")
    with serving(*FREE_PORTS, *words, folder=tmp_path) as process:
        host, port = first_line(process)
        with RemoteRocketMQ(f"{host}:{port}") as mq:
            assert [(message.text, message.queue_id) for message in mq.messages("orders")] == [
                ("order 17", 5)
            ]
        assert end(process)[0] == 0


def test_bad_load_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "state.yml").write_text("messages: [{topic: a, body: x, queue_id: 9}]")
    words = (*FREE_PORTS, "--ephemeral", "--log-level", "error", "--load", "state.yml")
    with serving(*words, folder=tmp_path) as process:
        assert refusal(process).startswith("pocketmq: load: message 1 for a was refused: ")


def test_routes_name_the_advertised_address(tmp_path: Path) -> None:
    with serving(*FREE_PORTS, "--ephemeral", "--advertise", "10.1.2.3:77", folder=tmp_path) as process:
        host, port = first_line(process)
        with RemoteRocketMQ(f"{host}:{port}") as mq:
            info = mq._wire.run(mq._wire.admin.cluster_info())
        assert (info.broker_addr_table or {})["broker-a"].broker_addrs == {0: "10.1.2.3:77"}


def test_a_person_at_a_terminal_reads_three_lines(tmp_path: Path) -> None:
    screen, terminal = os.openpty()
    words = (*FREE_PORTS, "--emulate", "4.9", "--log-level", "error")
    process = subprocess.Popen(
        [sys.executable, "-m", "pocketmq.cli", "serve", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
    )
    os.close(terminal)
    try:
        host, port = first_line(process)
        with os.fdopen(screen, buffering=1) as lines:
            shown = [next(lines) for _ in range(3)]
    finally:
        process.kill()
        process.communicate()
    assert shown[0].startswith(f"name server {host}:{port}, broker broker-a 127.0.0.1:")
    assert shown[0].rstrip().endswith("like RocketMQ 4.9")
    assert shown[1].strip() == f"store {tmp_path / 'pocketmq-store'}"
    assert "Ctrl-C" in shown[2]


def test_virtual_time_stands_still(tmp_path: Path) -> None:
    with serving(*FREE_PORTS, "--ephemeral", "--virtual-time", folder=tmp_path) as process:
        host, port = first_line(process)
        with RemoteRocketMQ(f"{host}:{port}") as mq:
            mq.send("orders", "one")
            time.sleep(0.02)  # by the wall's time
            mq.send("orders", "two")
            one, two = mq.messages("orders")
    assert one.store_timestamp == two.store_timestamp
