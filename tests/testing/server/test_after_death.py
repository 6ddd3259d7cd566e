"""A process that is killed leaves no temporary store, and no program that it ran."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from processes import is_running, line_of
from waiting import wait_until

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")


def started(program: str, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


SERVERS = """
    import sys
    from pocketmq.testing import EmbeddedServer, RocketMQCluster

    with EmbeddedServer() as one, EmbeddedServer() as two, RocketMQCluster(brokers=1) as cluster:
        print(one.broker.config.store.root, two.broker.config.store.root, cluster.broker("b0").broker.config.store.root)
        sys.stdout.flush()
        sys.stdin.read()
"""


@pytest.fixture
def servers() -> Iterator["subprocess.Popen[str]"]:
    process = started(SERVERS)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_stores_of_a_killed_process_are_removed(
    servers: "subprocess.Popen[str]", number: signal.Signals
) -> None:
    stores = [Path(store) for store in line_of(servers).split()]
    assert all(store.is_dir() for store in stores)
    servers.send_signal(number)
    servers.wait()
    wait_until(lambda: not any(store.exists() for store in stores), what="the stores are removed")


def test_a_folder_of_a_living_process_stays_and_its_programs_run_on(tmp_path: Path) -> None:
    """Programs are ended by SIGTERM and then SIGKILL; those that were let live are not."""
    program = """
        import subprocess, sys
        from pathlib import Path
        from pocketmq.testing.server.after_death import end_after_death, let_live, remove_after_death

        folder = Path(sys.argv[1])
        folder.mkdir()
        remove_after_death(folder)
        stubborn = ["sh", "-c", "trap '' TERM; echo; exec sleep 60"]
        programs = [subprocess.Popen(words, process_group=0, stdout=subprocess.PIPE)
                    for words in (["sleep", "60"], stubborn, ["sleep", "60"])]
        programs[1].stdout.readline()
        for one in programs:
            end_after_death(-one.pid)
        let_live(-programs[2].pid)
        print(*(one.pid for one in programs), flush=True)
        sys.stdin.read()
    """
    folder = tmp_path / "with a blank"
    process = started(program, str(folder))
    pids = [int(pid) for pid in line_of(process).split()]
    try:
        assert folder.is_dir()
        assert all(map(is_running, pids))
        process.kill()
        process.communicate()
        wait_until(lambda: not folder.exists(), what="the folder is removed")
        wait_until(lambda: [is_running(pid) for pid in pids] == [False, False, True], what="they end")
    finally:
        process.kill()
        for pid in filter(is_running, pids):
            os.kill(pid, signal.SIGKILL)


def test_the_shell_is_no_child_and_keeps_no_pipe_of_ours_open() -> None:
    """A test that waits for all its children must not wait for it, nor a reader of our output."""
    process = started(
        """
        import os
        from pocketmq.testing import EmbeddedServer

        with EmbeddedServer():
            try:
                os.wait()
            except ChildProcessError:
                print("no child", flush=True)
        if os.fork() == 0:
            with EmbeddedServer() as of_child:
                print(of_child.broker.config.store.root, flush=True)
            os._exit(0)
        os.wait()
        os.kill(os.getpid(), 9)
        """
    )
    said, _ = process.communicate(timeout=30)
    assert said.startswith("no child\n/")
    assert not Path(said.splitlines()[1]).exists()
