"""`pocketmq` run in this process, and what every mistake looks like."""

from click.testing import CliRunner, Result
from pocketmq.cli.main import main


def pocketmq(*words: str, namesrv_addr: str = "", stdin: bytes | None = None) -> Result:
    """Run `pocketmq` with these words, in an environment that names this name server."""
    environment = {"NAMESRV_ADDR": namesrv_addr or None}
    return CliRunner(env=environment).invoke(main, words, input=stdin, prog_name="pocketmq")


def refusal(result: Result, exit_code: int = 2) -> str:
    """The one line that it wrote, on standard error."""
    assert (result.exit_code, result.stdout) == (exit_code, ""), result.output
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("pocketmq")
    return result.stderr
