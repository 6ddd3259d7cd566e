"""`pocketmq exec -- COMMAND`: run any program with a server of its own.

    pocketmq exec -- mvn test          NAMESRV_ADDR is set for it; we return its exit code

The server is in this process (`pocketmq.testing.EmbeddedServer`), the program a child. Who gets which signal:

    started from a terminal     the terminal itself sends Ctrl-C, Ctrl-\\ and Ctrl-Z to the program; we wait until the
                                program has ended. We pass on SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2
    anywhere else (CI, cron)    the program leads a process group. We pass every signal on to the whole group, and end
                                the rest of the group when the program has ended

If we are killed with SIGKILL, the program or its group is ended by SIGTERM.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Final

import click
from pocketmq.broker.errors import StartError
from pocketmq.store.errors import StoreError
from pocketmq.testing.errors import TestingError
from pocketmq.testing.server.after_death import end_after_death, let_live

from .mistakes import USER_ERROR, one_line, signals_handled
from .server_options import ServerOptions, server_options

NOT_EXECUTABLE: Final = 126
NOT_FOUND: Final = 127
"""The exit codes that shells use if a program cannot be started."""
PATIENCE_SECONDS: Final = 2.0
"""How long the processes that the program left behind may take to end."""


def _signals(*names: str) -> tuple[signal.Signals, ...]:
    """The signals of these names that the system has: Windows lacks most of them."""
    return tuple(signal.Signals[name] for name in names if name in signal.Signals.__members__)


_FROM_TERMINAL: Final = _signals("SIGINT", "SIGQUIT")
_PASSED_ON: Final = _signals("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


@click.command("exec", context_settings={"allow_interspersed_args": False})
@server_options(log_level="error")
@click.option("--store", metavar="DIR", help="A store to keep.  [default: a temporary one]")
@click.option("--keep", is_flag=True, help="Keep the temporary store, and say where it is.")
@click.option(
    "--namesrv-port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the name server.  [default: a free one]",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_command(
    *, given: ServerOptions, store: str | None, keep: bool, namesrv_port: int, command: tuple[str, ...]
) -> None:
    """Run COMMAND with a RocketMQ server of its own.

    NAMESRV_ADDR in its environment is the address of the server. When COMMAND has ended, the server is stopped. The
    exit code is that of COMMAND.
    """
    from pocketmq.broker.config.loading import load_broker, read_settings
    from pocketmq.broker.process import write_ports
    from pocketmq.testing.server.embedded import EmbeddedServer

    program = _Program(command)
    try:
        settings = {setting.key: setting.value for setting in read_settings(None, given.sets)}
        if given.admin_port is not None:
            given.check_admin_port(load_broker(given.conf_file, given.sets))
        if given.emulate is not None:
            settings["emulate"] = given.emulate
        if keep and store is None:
            store = tempfile.mkdtemp(prefix="pocketmq-")
            click.echo(f"pocketmq: the store is kept in {store}", err=True)
        server = EmbeddedServer(
            settings,
            conf=given.conf_file,
            store=store,
            namesrv_port=namesrv_port,
            virtual_time=given.virtual_time,
            journal=given.journal,
            admin_port=given.admin_port,
            admin_host_names=given.admin_host_names,
            grpc_port=given.grpc_port,
            load=given.loads,
        )
        with signals_handled(_PASSED_ON, program.signalled), server:
            addresses = {} if given.admin_port is None else {"POCKETMQ_ADMIN": server.admin_url}
            endpoint = {"GRPC_ENDPOINT": server.grpc_endpoint} if server.has_grpc_port else {}
            if given.ports_file is not None:
                write_ports(given.ports_file, server.node, addresses | endpoint)
            for_program = {f"ROCKETMQ_{name}": address for name, address in endpoint.items()}
            environment = {"NAMESRV_ADDR": server.namesrv_addr, **addresses, **for_program}
            code = program.run({**os.environ, **environment})
    except (StartError, StoreError, TestingError) as error:
        click.echo(f"pocketmq: {one_line(error)}", err=True)
        code = USER_ERROR
    sys.exit(code)


class _Program:
    """The child: not started, running, ended. Belongs to the main thread, where signal handlers run."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._has_terminal = _has_terminal()
        self._is_begun = False
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        """Signals that arrived while the child was being started."""

    def run(self, environment: Mapping[str, str]) -> int:
        """Start the program and wait for its end; returns its exit code, or 128 + number if a signal ended it."""
        self._is_begun = True
        group = None if self._has_terminal else 0
        try:
            self._child = subprocess.Popen(self._command, env=environment, process_group=group)
        except OSError as error:
            click.echo(f"pocketmq: cannot run {self._command[0]}: {error.strerror or error}", err=True)
            return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        target = self._child.pid if self._has_terminal else -self._child.pid
        end_after_death(target)
        for number in self._early:
            self._pass_on(number)
        code = self._wait_for(self._child)
        if not self._has_terminal:
            _end_group(self._child.pid)
        let_live(target)
        return code if code >= 0 else 128 - code

    @staticmethod
    def _wait_for(child: "subprocess.Popen[bytes]") -> int:
        """The exit code. It looks for the end at least every 50 ms (as `Popen.wait` with a timeout does), because a
        signal that arrives just before a wait without one begins would be passed on when that wait ends."""
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return child.wait(timeout=3600)

    def signalled(self, number: int, frame: FrameType | None) -> None:
        """Signals go to the program. Before it is started, a signal cancels the start."""
        if not self._is_begun:
            raise SystemExit(128 + number)
        if self._child is None:
            self._early.append(number)
        else:
            self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        child = self._child
        if child is None or child.returncode is not None:
            return  # it has ended, and the server is stopping
        if not self._has_terminal:
            _signal_group(child.pid, number)
        elif number not in _FROM_TERMINAL:
            child.send_signal(number)


def _has_terminal() -> bool:
    """True if we are in the foreground of a terminal; then a child of our process group is, too."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def _end_group(leader: int) -> None:
    """End the processes that the program left behind: SIGTERM, then SIGKILL."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    is_left = _signal_group(leader, signal.SIGTERM)
    while is_left and time.monotonic() < deadline:
        time.sleep(0.02)
        is_left = _signal_group(leader, 0)
    if is_left:
        _signal_group(leader, signal.SIGKILL)


def _signal_group(leader: int, number: int) -> bool:
    """False if the group has no process left."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # a process is left that we may not end (macOS: a zombie)
        return number != 0
    return True
