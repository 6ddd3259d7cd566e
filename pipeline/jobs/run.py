"""How a job is run: the options that all share, what is looked at before Spark starts, a session, and how it ends.

Spark takes seconds to start, so what the user can mend is said before: one line and exit code 2, without Java's own
words. Exit code 2 as well where an audit finds something; 130 for Ctrl-C.
"""

import logging
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ..errors import OptionError, PipelineError
from ..report.report import Outputs, Report, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOUND: Final = 2
USER_ERROR: Final = 2
INTERRUPTED: Final = 130
_MASTERS: Final = r"local(\[(\*|\d+)(, *\d+)?\])?|local-cluster\[[\d, ]+\]|spark://.+|k8s://.+|yarn"
_MEMORY: Final = r"\d+[kmgtKMGT]"
_ERRORS_MODULE: Final = "pocketmq.pipeline.errors."
_OF_EXPORT: Final = re.compile(r"_SUCCESS|_temporary|date=.*|part-.*|\..*\.crc")
"""What Spark leaves in a folder of Parquet files."""


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every job."""
    for decorate in reversed(
        (
            click.option("--master", default="local[*]", show_default=True, help="Where Spark runs."),
            click.option("--memory", default="1g", show_default=True, help="Memory of the driver."),
            click.option("--json", "json_file", metavar="FILE", help="Write all tables as JSON."),
            click.option(
                "--parquet",
                "parquet_folder",
                metavar="DIR",
                help="Write each table as Parquet, in a folder of its name.",
            ),
            click.option("--html", "html_file", metavar="FILE", help="Write a report for a browser."),
            click.option("--quiet", is_flag=True, help="Nothing on the terminal but errors."),
        )
    ):
        command = decorate(command)
    return command


def run_job(
    name: str,
    build: "Callable[[SparkSession], Report]",
    *,
    master: str,
    memory: str,
    json_file: str | None,
    parquet_folder: str | None,
    html_file: str | None,
    quiet: bool,
    check: Callable[[], object] = lambda: None,
    fails_on_findings: bool = True,
    is_short: bool = False,
) -> None:
    """Run a job in a session of its own, and write what it found. `check` raises what can be said without Spark;
    `is_short`: its plans cost more than its rows."""
    outputs = Outputs(json_file, parquet_folder, html_file, quiet)
    logging.getLogger().addFilter(_is_not_interrupt_stack)
    try:
        with exit_on_user_error():
            check_dependencies()
            check()
            check_session(master, memory)
            check_outputs(outputs)
            report = _run(name, build, outputs, master=master, memory=memory, is_short=is_short)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        logging.getLogger().removeFilter(_is_not_interrupt_stack)
    if report.findings and fails_on_findings:
        sys.exit(FOUND)


@contextmanager
def exit_on_user_error() -> Iterator[None]:
    """One line and exit code 2 for what the user can mend."""
    try:
        yield
    except Exception as error:
        line = reason(error)
        if line is None:
            raise
        click.echo(f"pocketmq: {line}", err=True)
        sys.exit(USER_ERROR)


def _run(
    name: str,
    build: "Callable[[SparkSession], Report]",
    outputs: Outputs,
    *,
    master: str,
    memory: str,
    is_short: bool,
) -> Report:
    from ..session.session import pocketmq_session

    try:
        with defer_interrupts() as interrupts:
            spark = pocketmq_session(
                f"pocketmq {name}",
                master=master,
                memory=memory,
                shows_progress=not outputs.is_quiet and sys.stderr.isatty(),
                optimize_for_startup=is_short,
            )
    except PipelineError:
        raise
    except Exception as error:
        raise OptionError(
            f"Spark does not start with --master {master} and --memory {memory}: {cause(error)}"
        ) from error
    try:
        if interrupts:
            raise KeyboardInterrupt
        # What a task raises comes to us as an exception; the log would print it with Java's stack before.
        spark.sparkContext.setLogLevel("OFF")
        report = build(spark)
        write(report, outputs)
    finally:
        spark.stop()
    return report


def _is_not_interrupt_stack(record: logging.LogRecord) -> bool:
    """The bridge to Java logs the stack of what is the end the user wished for."""
    return record.msg != "KeyboardInterrupt while sending command."


@contextmanager
def defer_interrupts() -> Iterator[list[int]]:
    """Ctrl-C is noted and no more: Java that is left alone while it starts would stay for ever."""
    came: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield came  # it is ignored, or somebody else's
        return

    def note(number: int, _: object) -> None:
        came.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield came
    finally:
        if signal.getsignal(signal.SIGINT) is note:  # Spark has a handler of its own once it runs
            signal.signal(signal.SIGINT, before)


def check_dependencies() -> None:
    """`PipelineError` where the wheels of the extra are not there."""
    if not all(find_spec(name) for name in ("pyspark", "pyarrow", "numpy")):
        raise PipelineError("the pipeline needs its extra: pip install 'pocketmq[spark]'")


def check_session(master: str, memory: str) -> None:
    """`OptionError` for what Spark would not understand."""
    if not re.fullmatch(_MASTERS, master):
        raise OptionError(
            f"--master: {master!r} is none of local[N], local[*], spark://HOST:PORT, yarn, k8s://URL"
        )
    if not re.fullmatch(_MEMORY, memory):
        raise OptionError(f"--memory: {memory!r} is no size such as 512m or 2g")


def check_outputs(outputs: Outputs) -> None:
    """`OptionError` for files that could not be written once the work is done."""
    for option, text in (("--json", outputs.json_file), ("--html", outputs.html_file)):
        if text is None:
            continue
        if not Path(text).absolute().parent.is_dir():
            raise OptionError(f"{option}: there is no folder {Path(text).absolute().parent}")
        if Path(text).is_dir():
            raise OptionError(f"{option}: {text} is a folder")
    if outputs.parquet_folder is not None and Path(outputs.parquet_folder).is_file():
        raise OptionError(f"--parquet: {outputs.parquet_folder} is a file")


def check_replaceable(option: str, text: str) -> None:
    """`OptionError` unless a folder is new, empty, or Spark's: it will be replaced with all that is in it."""
    folder = Path(text)
    if "://" in text or not folder.exists():
        return
    if not folder.is_dir():
        raise OptionError(f"{option}: {text} is a file")
    for path in folder.iterdir():
        if not _OF_EXPORT.fullmatch(path.name):
            raise OptionError(f"{option}: {text} holds {path.name}, and is no export that could be replaced")


def reason(error: BaseException) -> str | None:
    """The line of an error that is ours, also where Spark has wrapped it in its own; None for any other."""
    if isinstance(error, PipelineError | OSError):
        return str(error)
    for line in str(error).splitlines():
        kind, separator, text = line.strip().partition(": ")
        if separator and kind.startswith(_ERRORS_MODULE):
            return text
    return None


def cause(error: BaseException) -> str:
    """What an error of Spark's says, in one line: behind `py4j`'s introduction, before Java's stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    of_java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return (of_java or lines or [type(error).__name__])[0]
