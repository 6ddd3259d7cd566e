"""Servers and programs end with the process that started them."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from processes import is_running, line_of
from waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such parents")

PARENT = """
    import os, signal, subprocess, sys

    how, words = sys.argv[1], sys.argv[2:]
    signal.signal(signal.SIGHUP, signal.SIG_IGN if how == "nohup" else signal.SIG_DFL)
    server = subprocess.Popen(
        [sys.executable, "-m", "pocketmq.cli", *words],
        stdout=subprocess.PIPE, text=True, start_new_session=how == "setsid",
    )
    print(server.pid, server.stdout.readline().strip(), flush=True)
    sys.stdin.read()
"""
PORTS = ("--port", "0", "--namesrv-port", "0")


def parent_of(how: str, *words: str, folder: Path) -> "tuple[subprocess.Popen[str], int, str]":
    """The parent, the process that it started, and the first line of that one."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT), how, *words],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    pid, _, line = line_of(process).partition(" ")
    return process, int(pid), line


def end(process: "subprocess.Popen[str]", *pids: int) -> None:
    process.kill()
    process.communicate()
    for pid in pids:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)


def test_an_ephemeral_server_ends_with_its_parent_and_removes_its_store(tmp_path: Path) -> None:
    parent, server, line = parent_of("plain", "serve", "--ephemeral", *PORTS, folder=tmp_path)
    try:
        assert line.startswith("NAMESRV_ADDR=")
        assert len(list(tmp_path.iterdir())) == 1
        parent.kill()
        parent.communicate()
        wait_until(lambda: not is_running(server), what="the server ends")
        wait_until(lambda: not list(tmp_path.iterdir()), what="the store is removed")
    finally:
        end(parent, server)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("nohup", ("serve", "--ephemeral")),
        ("setsid", ("serve", "--ephemeral")),
        ("plain", ("serve", "--store", "kept")),
    ],
)
def test_a_detached_server_and_one_with_a_store_to_keep_go_on(
    tmp_path: Path, how: str, words: tuple[str, ...]
) -> None:
    parent, server, line = parent_of(how, *words, *PORTS, folder=tmp_path)
    try:
        assert line.startswith("NAMESRV_ADDR=")
        parent.kill()
        parent.communicate()
        with pytest.raises(AssertionError):
            wait_until(
                lambda: not is_running(server), timeout=0.6
            )  # a server that is not detached ends at once
    finally:
        end(parent, server)
    if "--ephemeral" in words:
        wait_until(lambda: not list(tmp_path.iterdir()), what="the store of the killed server is removed")


def test_the_program_of_exec_ends_if_exec_is_killed(tmp_path: Path) -> None:
    """And the store of its server is removed."""
    # exec knows the number of the program only after it has started it: a moment before that, it cannot be told.
    shown = 'sleep 0.3; echo "$$"; exec sleep 60'
    parent, command, line = parent_of("plain", "exec", "--", "sh", "-c", shown, folder=tmp_path)
    program = int(line)
    try:
        assert is_running(program)
        assert len(list(tmp_path.iterdir())) == 1
        os.kill(command, signal.SIGKILL)
        wait_until(lambda: not is_running(program), what="the program ends")
        wait_until(lambda: not list(tmp_path.iterdir()), what="the store is removed")
    finally:
        end(parent, command, program)
