"""`pocketmq admin` for many commands in one process, inside a server's namespace: AdminShell.java's counterpart.

    python python_admin_shell.py MARK

A line on standard input is the words of one command, each in Base64, separated by blanks. The command's output follows;
then `EXIT` with the exit code if that is not 0, what the command wrote to standard error, and the mark on a line of its
own. Not a test: the tests that run it are `test_commands.py`.
"""

import base64
import sys

from click.testing import CliRunner
from pocketmq.cli.main import main


def serve(mark: str) -> None:
    runner = CliRunner()
    print(mark, flush=True)
    for line in sys.stdin:
        words = [base64.b64decode(word).decode() for word in line.split()]
        result = runner.invoke(main, ["admin", *words])
        sys.stdout.write(result.stdout)
        if result.exit_code != 0:
            print(f"\nEXIT {result.exit_code}: {result.stderr.strip()}")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            print(f"\nRAISED {result.exception!r}")
        print(f"\n{mark}", flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
