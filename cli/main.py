"""The program `pocketmq`: its commands, each imported when it is used.

`COMMANDS` has one line for each command. Nothing else is imported for `--help`, for completion, or for another command,
so `pocketmq serve` and each TAB stay quick. `mistakes.py` has the exit codes.
"""

import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from .mistakes import USER_ERROR, SpellingGroup, ended_from_outside, refuse

_NO_WORDS: Final[Any] = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""No command is named: the text is the help. Before click 8.2 that is no error."""


class Entry(NamedTuple):
    """One command of the program."""

    place: str
    """`module:attribute` of the click command, in this package."""
    summary: str
    """The line that `pocketmq --help` shows: the first sentence of the command's own help."""


RUN: Final = {
    "serve": Entry("serve:serve", "Serve RocketMQ: a broker and its name server in one process."),
    "exec": Entry("exec:exec_command", "Run COMMAND with a RocketMQ server of its own."),
    "proxy": Entry("proxy:proxy", "Stand between clients and a server, with a slow or broken network."),
    "demo": Entry(
        "demo:demo", "Show where a consumer group starts reading, and why, on a broker of its own."
    ),
    "bench": Entry("bench.command:bench", "Measure the messages a second and the latencies of a broker."),
    "behave": Entry("behave:behave", "Say how a client program behaves while its brokers have trouble."),
}
LOOK: Final = {
    "topics": Entry("inspect.topics:topics", "List the topics with their queues and messages."),
    "groups": Entry("inspect.groups:groups", "List the consumer groups with members, topics and lag."),
    "lag": Entry("inspect.lag:lag", "Say how many messages a group has still to consume, queue by queue."),
    "clients": Entry(
        "inspect.clients:clients", "List the clients that are connected, with group, address and version."
    ),
    "explain": Entry(
        "inspect.explain:explain", "Say where GROUP starts reading TOPIC, queue by queue, and why."
    ),
    "tail": Entry("messages.tail:tail", "Print the messages of TOPIC as they arrive."),
    "store": Entry("store_command:store_command", "Look at the files of a store that no server has open."),
    "pipeline": Entry(
        "pipeline.command:pipeline",
        "Topics, stores and client behaviour as tables: jobs on DuckDB and Spark.",
    ),
}
CHANGE: Final = {
    "send": Entry(
        "messages.send:send", "Send messages to TOPIC: each BODY, or each line of FILE or standard input."
    ),
    "admin": Entry("admin.command:admin", "Look into a cluster and change it: the commands of mqadmin."),
    "completion": Entry(
        "completion:completion", "Print what makes TAB complete pocketmq's words in a shell."
    ),
}
CHAPTERS: Final = {"Run": RUN, "Look": LOOK, "Change": CHANGE}
COMMANDS: Final = {name: entry for chapter in CHAPTERS.values() for name, entry in chapter.items()}
"""Name -> where the command is, and what it does."""


class LazyGroup(SpellingGroup):
    """A click group that imports a command when it is run, and none for its list of commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.place.partition(":")
        with _importing():
            command = getattr(import_module(f".{module}", __package__), attribute)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        with ended_from_outside():  # also here, for click itself would end with 1 if a reader has seen enough
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, chapter in CHAPTERS.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.summary) for name, entry in chapter.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [
            CompletionItem(name, help=entry.summary)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the program. A mistake of the user is one line on standard error and exit code 2."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        _open_closed_streams()
        try:
            with ended_from_outside():
                code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except _NO_WORDS as error:
            click.echo(error.format_message(), err=True)
            sys.exit(USER_ERROR)
        except click.ClickException as error:
            refuse(error.format_message(), program=_program(error))
        except UnicodeEncodeError as error:
            refuse(f"{error.object!r:.100} is not UTF-8")
        except OSError as error:
            refuse(": ".join(str(part) for part in (error.filename, error.strerror) if part) or error)
        sys.exit(code if isinstance(code, int) else 0)


@contextlib.contextmanager
def _importing() -> Iterator[None]:
    """Imports make many objects and no garbage, so nothing is collected. Ctrl-C waits for their end: Python loses a
    KeyboardInterrupt that is raised while it frees the lock of a module."""
    arrived: list[int] = []
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    waits = is_default and threading.current_thread() is threading.main_thread()
    collects = gc.isenabled()
    gc.disable()
    if waits:
        signal.signal(signal.SIGINT, lambda number, frame: arrived.append(number))
    try:
        yield
    finally:
        if waits:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if collects:
            gc.enable()
    if arrived:
        raise KeyboardInterrupt


def _open_closed_streams() -> None:
    """Open /dev/null in place of a closed standard stream (`2>&-`): the next file would get its number, and what
    is written to the stream would end up there."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


def _program(error: click.ClickException) -> str:
    """`pocketmq send`, as far as the command line got."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    return "pocketmq" if context is None else context.command_path


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pocketmq", message="%(package)s %(version)s")
def main() -> None:
    """A pocket-sized RocketMQ."""
