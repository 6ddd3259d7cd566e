"""The program's help: it lists each command with its own summary, and imports none of them."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from pocketmq.cli.main import COMMANDS, main


@pytest.mark.parametrize("name", COMMANDS)
def test_summary_is_the_first_sentence_of_the_commands_own_help(name: str) -> None:
    command = main.get_command(click.Context(main), name)  # type: ignore[attr-defined]
    assert command.get_short_help_str(limit=1000) == COMMANDS[name].summary


def test_help_imports_no_command() -> None:
    program = (
        "import sys\n"
        "from pocketmq.cli.main import COMMANDS, main\n"
        "main(['--help'], standalone_mode=False)\n"
        "loaded = {entry.place.partition(':')[0] for entry in COMMANDS.values()} & sys.modules.keys()\n"
        "assert not loaded, loaded\n"
        "assert not {'asyncio', 'msgspec', 'pocketmq.client'} & sys.modules.keys()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert all(name in ran.stdout for name in COMMANDS)


def test_completion_lists_commands_and_imports_none() -> None:
    program = (
        "import sys\n"
        "from pocketmq.cli.main import COMMANDS, main\n"
        "try: main(prog_name='pocketmq')\n"
        "except SystemExit: pass\n"
        "assert not {entry.place.partition(':')[0] for entry in COMMANDS.values()} & sys.modules.keys()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={"_POCKETMQ_COMPLETE": "bash_complete", "COMP_WORDS": "pocketmq e", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["plain,exec", "plain,explain"]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "pipeline"])
def test_short_help_option_works_everywhere(name: str) -> None:
    result = CliRunner().invoke(main, [name, "-h"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("Usage: ")


def test_command_that_does_not_exist_is_one_clear_error() -> None:
    result = CliRunner().invoke(main, ["sned"])
    assert result.exit_code == 2
    assert "No such command 'sned'" in result.stderr
