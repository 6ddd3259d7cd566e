"""`pocketmq exec`: the program finds its server and gets its signals, its exit code is kept, no process remains.

Real processes. Started without a terminal, as in CI, except for one test that creates a terminal.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner
from pocketmq.cli.exec import _Program
from pocketmq.cli.main import main

from processes import is_running, line_of

EXEC = (sys.executable, "-c", "from pocketmq.cli.main import main; main()", "exec")
END_SECONDS = 20
CONNECT = """
import os, socket
host, _, port = os.environ["NAMESRV_ADDR"].partition(":")
socket.create_connection((host, int(port)), 5).close()
print("reached", flush=True)
"""
LISTENER = """
import os, signal, sys, threading
numbers = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT")}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
threading.Thread(target=lambda: os._exit(int(sys.stdin.readline())), daemon=True).start()
print("ready", flush=True)
while True:
    print("heard", signal.Signals(signal.sigwait(numbers)).name, flush=True)
"""
"""With handlers, a signal that arrives just before a read begins would be heard when that read ends."""


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


@contextmanager
def executing(*command: str, temporary: Path, words: Sequence[str] = ()) -> Iterator["subprocess.Popen[str]"]:
    """`pocketmq exec` without a terminal; it is always ended after the test."""
    process = subprocess.Popen(
        [*EXEC, *words, "--", *command],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(*command: str, temporary: Path, words: Sequence[str] = ()) -> tuple[int, str, str]:
    """(exit code, stdout, stderr)"""
    with executing(*command, temporary=temporary, words=words) as process:
        out, errors = process.communicate(timeout=END_SECONDS)
        return process.returncode, out, errors


def test_program_finds_its_server_and_no_process_or_store_remains(temporary: Path) -> None:
    assert ended(sys.executable, "-c", CONNECT, temporary=temporary) == (0, "reached\n", "")
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
def test_exit_code_is_that_of_the_program(temporary: Path, script: str, code: int) -> None:
    assert ended("sh", "-c", script, temporary=temporary) == (code, "", "")
    assert list(temporary.iterdir()) == []


def test_words_after_the_program_are_its_arguments(temporary: Path) -> None:
    process = subprocess.run([*EXEC, "echo", "--help", "-c"], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (0, "--help -c\n")


@pytest.mark.parametrize(
    ("words", "command", "code", "complaint"),
    [
        ((), "no-such-program", 127, ": cannot run no-such-program: No such file or directory"),
        ((), "/dev/null", 126, ": cannot run /dev/null: Permission denied"),
        (("--set", "brokerNam=x"), "true", 2, ": settings: unknown key brokerNam, did you mean brokerName?"),
        (("-c", "no.conf"), "true", 2, ": cannot read no.conf: No such file or directory"),
        (("--topic", "a:x"), "true", 2, " exec: --topic must be TOPIC or TOPIC:QUEUES, got 'a:x'"),
        (("--topic", "a", "--topic", "a:2"), "true", 2, " exec: --topic names a twice"),
        (
            ("--topic", "a:0"),
            "true",
            2,
            ": load: topics: a: queues must be a whole number from 1 to 10000, got 0",
        ),
        (("--load", "{folder}/twice.yml"), "true", 2, ": {folder}/twice.yml, line 3: orders is named twice"),
    ],
)
def test_a_program_or_a_server_that_cannot_start_is_one_line(
    temporary: Path, tmp_path: Path, words: tuple[str, ...], command: str, code: int, complaint: str
) -> None:
    (tmp_path / "twice.yml").write_text("topics:\n  orders: 1\n  orders: 2\n")
    given = [word.format(folder=tmp_path) for word in words]
    ended_with, out, errors = ended(command, temporary=temporary, words=given)
    assert (ended_with, out, errors.count("\n")) == (code, "", 1)
    assert errors.endswith(f"{complaint.format(folder=tmp_path)}\n")
    assert list(temporary.iterdir()) == []


def test_a_temporary_store_can_be_kept_and_is_named(temporary: Path) -> None:
    code, rest, errors = ended("true", temporary=temporary, words=("--keep", "--emulate", "4.9"))
    (store,) = temporary.iterdir()
    assert (code, rest, errors) == (0, "", f"pocketmq: the store is kept in {store}\n")
    assert (store / "checkpoint").exists()


def test_journal_and_ports_file_are_written(temporary: Path, tmp_path: Path) -> None:
    words = ("--journal", str(tmp_path / "journal"), "--ports-file", str(tmp_path / "ports.json"))
    code, rest, _ = ended("cat", str(tmp_path / "ports.json"), temporary=temporary, words=words)
    assert code == 0
    assert set(json.loads(rest)) == {"namesrv", "broker", "admin", "grpc"}
    assert list((tmp_path / "journal").iterdir())


LOOK = """
import os
from pocketmq.testing.remote import RemoteRocketMQ
with RemoteRocketMQ(os.environ["NAMESRV_ADDR"]) as mq:
    print([one.text for one in mq.messages("orders")], mq.send("bills", "x", queue_id=5).queue_id, end="")
"""


def test_the_program_finds_what_was_loaded_and_the_topics_that_were_named(
    temporary: Path, tmp_path: Path
) -> None:
    (tmp_path / "state.yml").write_text("topics: {orders: 1}\nmessages: [{topic: orders, body: order 17}]\n")
    words = (
        "--load",
        str(tmp_path / "state.yml"),
        "--set",
        "autoCreateTopicEnable=false",
        "--topic",
        "bills:6",
    )
    assert ended(sys.executable, "-c", LOOK, temporary=temporary, words=words) == (0, "['order 17'] 5", "")


def test_kept_store_is_kept(temporary: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert ended("true", temporary=temporary, words=("--store", str(store))) == (0, "", "")
    assert (store / "checkpoint").exists()
    assert not (store / "abort").exists(), "it was stopped in order"


# -- signals


def test_signals_are_passed_on_and_the_program_decides_when_to_end(temporary: Path) -> None:
    with executing(sys.executable, "-c", LISTENER, temporary=temporary) as process:
        assert line_of(process) == "ready"
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT"):
            process.send_signal(getattr(signal, name))
            assert line_of(process) == f"heard {name}"
        out, errors = process.communicate("5\n", timeout=END_SECONDS)
        assert (process.returncode, out, errors) == (5, "", "")
    assert list(temporary.iterdir()) == []


def test_the_end_of_the_program_is_not_waited_for_without_a_timeout() -> None:
    """A signal that arrives just before such a wait would be passed on when it ends: 20 of 3,000,000 were."""

    class Child:
        waits = iter((subprocess.TimeoutExpired("x", 1), 5))

        def wait(self, timeout: float) -> int:
            found = next(self.waits)
            if isinstance(found, Exception):
                raise found
            return found

    assert _Program._wait_for(cast(Any, Child())) == 5


def test_signal_that_ends_the_program_ends_all(temporary: Path) -> None:
    with executing("sh", "-c", "echo ready; exec sleep 1000", temporary=temporary) as process:
        assert line_of(process) == "ready"
        process.terminate()
        process.communicate(timeout=END_SECONDS)
        assert process.returncode == 128 + signal.SIGTERM
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_background_processes_of_the_program_are_ended(temporary: Path) -> None:
    sleeper = "exec sleep 1000 >/dev/null 2>&1"
    script = f"({sleeper}) & (trap '' TERM; {sleeper}) & jobs -p | xargs echo; read"
    with executing("bash", "-c", script, temporary=temporary) as process:
        left = [int(pid) for pid in line_of(process).split()]
        assert len(left) == 2
        assert all(map(is_running, left))
        process.communicate("\n", timeout=END_SECONDS)
        assert process.returncode == 0
    assert not any(map(is_running, left))


def test_signal_during_the_start_ends_the_server(temporary: Path, tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    os.mkfifo(conf)  # a reader waits for the writer: this holds the start there
    with executing("sh", "-c", "echo ran", temporary=temporary, words=("-c", str(conf))) as process:
        writer = os.open(conf, os.O_WRONLY)
        process.terminate()
        out, errors = process.communicate(timeout=END_SECONDS)
        os.close(writer)
        assert (process.returncode, out, errors) == (128 + signal.SIGTERM, "", "")
    assert list(temporary.iterdir()) == []


def test_ctrl_c_on_a_terminal_reaches_the_program_once(temporary: Path) -> None:
    """The terminal sends it to the whole foreground group: passing it on would send it twice."""
    terminal = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    process = subprocess.Popen(
        [sys.executable, "-c", terminal, *EXEC, "--", sys.executable, "-c", LISTENER],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdin is not None
        assert line_of(process) == "ready"
        process.stdin.write("\x03")
        process.stdin.flush()
        assert line_of(process).removeprefix("^C") == "heard SIGINT"
        process.stdin.write("5\n")
        process.stdin.flush()
        rest = process.stdout.read() if process.stdout else ""
        assert process.wait(END_SECONDS) == 5
        assert "heard" not in rest
    finally:
        process.kill()
        process.communicate()
    assert list(temporary.iterdir()) == []


def test_help_names_the_variable() -> None:
    result = CliRunner().invoke(main, ["exec", "--help"])
    assert result.exit_code == 0
    assert "NAMESRV_ADDR" in result.output
