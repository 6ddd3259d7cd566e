"""The exit codes of all commands, and the two ends that are no error: Ctrl-C, and a reader that has seen enough.

    0    all is well
    1    the command found something, or something failed: damage, duplicates, sends that are refused
    2    the user can correct something: one line on standard error
    3    no server answers at the address
    130  Ctrl-C

`exec` ends with the code of its program. Imported by every command, so it imports little.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

FAILED: Final = 1
USER_ERROR: Final = 2
UNREACHABLE: Final = 3
INTERRUPTED: Final = 130


@contextmanager
def ended_from_outside() -> Iterator[None]:
    """Inside, Ctrl-C ends the program with 130, and a closed standard output (`| head`) with 0 and no word."""
    try:
        yield
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The flush at exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
