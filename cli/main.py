"""The program `pocketmq`: its commands, each imported when it is used.

`COMMANDS` has one line for each command. Nothing else is imported for `--help`, for completion, or for another command,
so `pocketmq serve` and each TAB stay quick.
"""

from importlib import import_module
from typing import Final, NamedTuple

import click
from click.shell_completion import CompletionItem


class Entry(NamedTuple):
    """One command of the program."""

    place: str
    """`module:attribute` of the click command."""
    summary: str
    """The line that `pocketmq --help` shows: the first sentence of the command's own help."""


COMMANDS: Final = {
    "serve": Entry(
        "pocketmq.broker.serve_command:serve", "Serve RocketMQ: a broker and its name server in one process."
    ),
    "exec": Entry("pocketmq.cli.exec:exec_command", "Run COMMAND with a RocketMQ server of its own."),
    "demo": Entry(
        "pocketmq.cli.demo:demo",
        "Show where a consumer group starts reading, and why, on a broker of its own.",
    ),
    "explain": Entry(
        "pocketmq.cli.explain:explain", "Say where GROUP starts reading TOPIC, queue by queue, and why."
    ),
    "send": Entry(
        "pocketmq.cli.send:send", "Send messages to TOPIC: each BODY, or each line of FILE or standard input."
    ),
    "tail": Entry("pocketmq.cli.tail:tail", "Print the messages of TOPIC as they arrive."),
    "admin": Entry(
        "pocketmq.cli.admin.command:admin", "Look into a cluster and change it: the commands of mqadmin."
    ),
    "store": Entry(
        "pocketmq.cli.store_command:store_command", "Look at the files of a store that no server has open."
    ),
    "bench": Entry(
        "pocketmq.cli.bench.command:bench", "Measure the messages a second and the latencies of a broker."
    ),
    "pipeline": Entry(
        "pocketmq.cli.pipeline:pipeline", "Topics, stores and client behaviour as data frames: jobs on Spark."
    ),
}
"""Name -> where the command is, and what it does."""


class LazyGroup(click.Group):
    """A click group that imports a command when it is run, and none for its list of commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.place.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [
            CompletionItem(name, help=entry.summary)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pocketmq", message="%(package)s %(version)s")
def main() -> None:
    """A pocket-sized RocketMQ."""
