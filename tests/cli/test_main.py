"""The program's help: it lists each command with its own summary, and imports none of them."""

import os
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from pocketmq import cli
from pocketmq.cli.__main__ import run
from pocketmq.cli.main import COMMANDS, Entry, main
from pocketmq.cli.mistakes import INTERRUPTED

from processes import python


@pytest.mark.parametrize("name", COMMANDS)
def test_summary_is_the_first_sentence_of_the_commands_own_help(name: str) -> None:
    command = main.get_command(click.Context(main), name)  # type: ignore[attr-defined]
    assert command.get_short_help_str(limit=1000) == COMMANDS[name].summary


def test_help_imports_no_command() -> None:
    program = (
        "import sys\n"
        "from pocketmq.cli.main import COMMANDS, main\n"
        "main(['--help'], standalone_mode=False)\n"
        "places = {'pocketmq.cli.' + entry.place.partition(':')[0] for entry in COMMANDS.values()}\n"
        "loaded = places & sys.modules.keys()\n"
        "assert not loaded, loaded\n"
        "assert not {'asyncio', 'msgspec', 'pocketmq.client'} & sys.modules.keys()\n"
    )
    ran = python("-c", program)
    assert ran.returncode == 0, ran.stderr
    assert all(name in ran.stdout for name in COMMANDS)


@pytest.mark.usefixtures("ctrl_c_as_on_a_terminal")
def test_ctrl_c_in_an_import_ends_the_program_wherever_it_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python ignores exceptions of what is called when an object is freed, and frees the lock of each module."""
    (tmp_path / "interrupted_import.py").write_text(
        "import click, os, signal, weakref\n"
        "class Lock: pass\n"
        "lock = Lock()\n"
        "freed = weakref.ref(lock, lambda _: os.kill(os.getpid(), signal.SIGINT))\n"
        "del lock\n"
        "@click.command\n"
        "def command(): click.echo('not interrupted')\n"
    )
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    monkeypatch.setitem(COMMANDS, "interrupted", Entry("interrupted_import:command", ""))
    result = CliRunner().invoke(main, ["interrupted"])
    assert (result.exit_code, result.output.strip()) == (130, "")


INTERRUPTIONS = {
    "raised": "raise KeyboardInterrupt\n",
    "arrived": "import os, signal; os.kill(os.getpid(), signal.SIGINT)\n",
    "arrived where Python loses it": (
        "import os, signal, weakref\n"
        "class Lock: pass\n"
        "lock = Lock()\n"
        "freed = weakref.ref(lock, lambda _: os.kill(os.getpid(), signal.SIGINT))\n"
        "del lock\n"
    ),
}


@pytest.mark.usefixtures("ctrl_c_as_on_a_terminal")
@pytest.mark.parametrize("program", ["pocketmq.cli", "pocketmq.broker"])
@pytest.mark.parametrize("interruption", INTERRUPTIONS.values(), ids=INTERRUPTIONS)
def test_ctrl_c_before_the_program_is_imported_ends_it_without_a_stack(
    program: str, interruption: str, tmp_path: Path
) -> None:
    (tmp_path / "click.py").write_text(interruption)  # the first thing that it imports
    ran = python("-m", program, "--version", env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert (ran.returncode, ran.stdout, ran.stderr) == (INTERRUPTED, "", "")


def test_the_installed_program_begins_where_ctrl_c_is_caught() -> None:
    (entry,) = entry_points(group="console_scripts", name="pocketmq")
    assert entry.load() is run


def test_completion_lists_commands_and_imports_none() -> None:
    program = (
        "import sys\n"
        "from pocketmq.cli.main import COMMANDS, main\n"
        "try: main(prog_name='pocketmq')\n"
        "except SystemExit: pass\n"
        "places = {'pocketmq.cli.' + entry.place.partition(':')[0] for entry in COMMANDS.values()}\n"
        "assert not places & sys.modules.keys()\n"
    )
    environment = {"_POCKETMQ_COMPLETE": "bash_complete", "COMP_WORDS": "pocketmq e", "COMP_CWORD": "1"}
    ran = python("-c", program, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["plain,exec", "plain,explain"]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "pipeline"])
def test_short_help_option_works_everywhere(name: str) -> None:
    result = CliRunner().invoke(main, [name, "-h"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("Usage: ")


@pytest.mark.parametrize("words", [[], ["admin"], ["store"]])
def test_without_a_command_the_help_is_shown_as_it_is(words: list[str]) -> None:
    result = CliRunner().invoke(main, words, prog_name="pocketmq")
    shown = CliRunner().invoke(main, [*words, "--help"], prog_name="pocketmq")
    assert (result.exit_code, result.output.strip()) == (2, shown.output.strip())
