"""`pocketmq behave`: run a client program under scripted conditions and report what it did.

pocketmq behave send-busy broker-killed -- python my_client.py
pocketmq behave --save mine.json -- java -jar client.jar {namesrv} {topic}
pocketmq behave --against java.json --against mine.json         only compare

The work is that of `pocketmq.testing.behave`.
"""

import signal
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import click
from pocketmq.broker.errors import StartError
from pocketmq.testing.behave.run import MAX_AT_ONCE, Report, ReportError, read_report, run, write_report
from pocketmq.testing.behave.scenario import built_in, played_for, read_scenario
from pocketmq.testing.behave.stage import ProgramError
from pocketmq.testing.behave.table import FIGURES, played_in, scenarios_of
from pocketmq.testing.errors import TestingError

from .mistakes import FAILED, refuse, signals_handled
from .output import echo_json, json_option, table


class BehaveCommand(click.Command):
    """What is behind `--` is the program and its words; they arrive in `ctx.obj`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.obj = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])


@click.command(
    cls=BehaveCommand, options_metavar="[OPTIONS]", context_settings={"help_option_names": ["-h", "--help"]}
)
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO]... -- COMMAND")
@click.option("--list", "lists", is_flag=True, help="List the scenarios that come with PocketMQ.")
@click.option("--grpc", is_flag=True, help="The program speaks gRPC: play the scenarios for such clients.")
@click.option("--name", metavar="NAME", help="What the client is called.  [default: the program's name]")
@click.option(
    "--save", metavar="FILE", type=click.Path(path_type=Path), help="Write the report to FILE, as JSON."
)
@click.option(
    "--against",
    metavar="REPORT",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Show the clients of these reports beside it; repeatable. Without COMMAND only them.",
)
@click.option("--jobs", type=click.IntRange(1, MAX_AT_ONCE), default=1, help="So many scenarios at once.")
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Keep what the program prints, a file for each scenario and program.",
)
@json_option
@click.pass_context
def behave(
    ctx: click.Context,
    *,
    scenarios: tuple[str, ...],
    lists: bool,
    grpc: bool,
    name: str | None,
    save: Path | None,
    against: tuple[Path, ...],
    jobs: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Say how a client program behaves while its brokers have trouble.

    Each SCENARIO is one that comes with PocketMQ (without one, all for clients of its protocol) or a YAML file. COMMAND
    is a client of any language that runs until SIGTERM. It finds NAMESRV_ADDR, ROCKETMQ_GRPC_ENDPOINT, BEHAVE_TOPIC,
    BEHAVE_GROUP and BEHAVE_ROLE in its environment; {namesrv}, {grpc}, {topic}, {group} and {role} in its words are
    replaced. The exit code is 1 if a message was lost, or if a scenario waited in vain.
    """
    command: tuple[str, ...] = ctx.obj
    if lists:
        known = [read_scenario(name) for name in built_in()]
        rows = [(one.name, one.clients, one.about) for one in known]
        click.echo(table(("scenario", "clients", "about"), rows))
        return
    if not command and scenarios:
        raise click.UsageError(f"give the program after --: pocketmq behave {' '.join(scenarios)} -- COMMAND")
    if not command and not against:
        raise click.UsageError("give a program after --, or reports with --against")
    try:
        others = [read_report(path) for path in against]
        own = []
        if command:
            chosen = [read_scenario(word) for word in scenarios] or played_for("grpc" if grpc else "remoting")
            numbers = (signal.SIGTERM, signal.SIGHUP)
            with signals_handled(
                [one for one in numbers if signal.getsignal(one) is not signal.SIG_IGN], _end
            ):
                own.append(run(chosen, command, name or Path(command[0]).name, jobs, output))
        if save is not None and own:
            write_report(save, own[0])
    except (ReportError, ProgramError, StartError, TestingError, OSError) as error:
        refuse(error)
    reports = [*own, *others]
    if as_json:
        echo_json(own[0] if own else reports)
    else:
        click.echo(as_text(reports))
    found = [text for report in own for text in report.trouble()]
    for text in found:
        click.echo(f"pocketmq: {text}", err=True)
    sys.exit(FAILED if found else 0)


def _end(number: int, frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP end us as Ctrl-C does: with the programs, whose process groups they do not reach."""
    raise SystemExit(128 + number)


def as_text(reports: Sequence[Report]) -> str:
    """A table for each scenario: a row for each figure that some client has, a column for each client."""
    parts = []
    for name in scenarios_of(reports):
        played = played_in(reports, name)
        rows = [
            [figure.heading, *(str(figure.value(one.measures) or "-") for _, one in played)]
            for figure in FIGURES
            if any(figure.value(one.measures) for _, one in played)
        ]
        figures = textwrap.indent(table(["", *(client for client, _ in played)], rows), "  ")
        parts.append(f"{name}: {played[0][1].about}\n{figures}")
    return "\n\n".join(parts)
