"""How a job runs: common options, checks before Spark starts, a session, and the exit code.

    0    done, and nothing found
    1    the job found something (`audit`, `duplicates`, `behaviour`)
    2    the user can correct something: one line on standard error, without Java's stack
    3    the job failed: one line if it was Spark, else the stack
    130  Ctrl-C

Spark takes seconds to start, so everything that can be checked without it is checked first.
"""

import logging
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ...errors import PATH, CorruptStoreError, OptionError, PathError, PipelineError
from ..report.report import Outputs, Report, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FINDINGS: Final = 1
USER_ERROR: Final = 2
FAILED: Final = 3
INTERRUPTED: Final = 130
_MASTERS: Final = r"local(\[(\*|\d+)(, *\d+)?\])?|local-cluster\[[\d, ]+\]|spark://.+|k8s://.+|sc://.+|yarn"
_MEMORY: Final = r"\d+[kmgtKMGT]"
_ERRORS_MODULE: Final = "pocketmq.pipeline.errors."
_OF_SPARK: Final = frozenset(("pyspark", "py4j", "grpc"))
"""Packages whose exceptions are Spark's."""
NO_PACKAGE: Final = (
    "the Python of Spark's executors has no pocketmq: install its wheel there, or send it along by spark-submit "
    "--py-files (docs/pipeline-practice.md, PocketMQ on the executors)"
)
_OF_TEXTS: Final = frozenset(("AnalysisException", "ParseException", "IllegalArgumentException"))
"""Spark's exceptions for a wrong query, table or setting."""


_OUTPUT_OPTIONS: Final[tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...]] = (
    click.option(
        "--master",
        help="Where Spark runs; default: where spark-submit or Spark's own files say, else local[*].",
    ),
    click.option("--memory", help="Memory of the driver; default on this machine: 1g."),
    click.option(
        "--conf", "settings", metavar="K=V", multiple=True, help="A setting of Spark; may be repeated."
    ),
    click.option("--json-file", metavar="FILE", help="Write all tables as JSON."),
    click.option(
        "--parquet",
        "parquet_folder",
        metavar="DIR",
        help="Write each table as Parquet, in a folder with its name.",
    ),
    click.option("--html", "html_file", metavar="FILE", help="Write a report for a browser."),
    click.option("--quiet", is_flag=True, help="Print errors only."),
    click.option(
        "--verbose", "is_verbose", is_flag=True, help="Print Spark's log, and errors with their stack."
    ),
)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every job."""
    for decorate in reversed(_OUTPUT_OPTIONS):
        command = decorate(command)
    return command


def run_in_process(
    run: Callable[[Outputs], Report],
    *,
    json_file: str | None,
    parquet_folder: str | None,
    html_file: str | None,
    quiet: bool,
    fails_on_findings: bool = True,
    is_verbose: bool = False,
    **_: Any,
) -> None:
    """Run a job, and end with its exit code. `run` writes the report and returns it."""
    outputs = Outputs(json_file, parquet_folder, html_file, quiet)
    with exit_on_user_error(is_verbose=is_verbose):
        check_outputs(outputs)
        report = run(outputs)
    if report.findings and fails_on_findings:
        sys.exit(FINDINGS)


def run_job(
    name: str,
    build: "Callable[[SparkSession], Report]",
    *,
    master: str | None = None,
    memory: str | None = None,
    settings: Iterable[str] = (),
    is_verbose: bool = False,
    check: Callable[[], object] = lambda: None,
    before_stop: Callable[[], object] = lambda: None,
    **options: Any,
) -> None:
    """Run a job in a session of its own, and write its report.

    `check` raises `OptionError` for what can be checked without Spark. `before_stop` is called when the report is
    written, or the job failed. `settings` are Spark's, as `KEY=VALUE`. `options` are those of `run_in_process`.
    """

    def run(outputs: Outputs) -> Report:
        check_dependencies()
        check()
        own = read_settings(settings)
        check_master(master)
        check_memory(memory)
        from ...spark.session.session import pocketmq_session, set_log_level

        is_shown = not outputs.is_quiet and sys.stderr.isatty()
        if is_shown:
            click.echo(f"pocketmq {name}: Spark starts, which takes some seconds", err=True)
        with _user_error_if_spark_does_not_start(master, memory), defer_interrupts() as interrupts:
            spark = pocketmq_session(
                f"pocketmq {name}",
                master=master,
                memory=memory,
                settings=own,
                show_progress=is_shown,
                show_log=is_verbose,
            )
        try:
            if interrupts:
                raise KeyboardInterrupt
            set_log_level(spark, is_verbose=is_verbose)
            report = build(spark)
            write(report, outputs)
        finally:
            try:
                before_stop()
            finally:
                spark.stop()
        return report

    logging.getLogger().addFilter(_is_not_interrupt_stack)
    try:
        run_in_process(run, is_verbose=is_verbose, **options)
    finally:
        logging.getLogger().removeFilter(_is_not_interrupt_stack)


def check_master(master: str | None) -> None:
    """`OptionError` for a text that Spark does not accept."""
    if master is not None and not re.fullmatch(_MASTERS, master):
        raise OptionError(
            "--master",
            "must be local[N], local[*], spark://HOST:PORT, yarn, k8s://URL or sc://HOST:PORT, "
            f"got {master!r}",
        )


def check_memory(memory: str | None) -> None:
    """`OptionError` for a text that is no size."""
    if memory is not None and not re.fullmatch(_MEMORY, memory):
        raise OptionError("--memory", f"must be a size such as 512m or 2g, got {memory!r}")


def read_settings(texts: Iterable[str]) -> dict[str, str]:
    """The settings in `KEY=VALUE` texts. `OptionError` for anything else."""
    settings = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise OptionError("--conf", f"must be KEY=VALUE, such as spark.executor.memory=2g, got {text!r}")
        settings[key.strip()] = value.strip()
    return settings


@contextmanager
def exit_on_user_error(*, is_verbose: bool = False) -> Iterator[None]:
    """One line and exit code 2 for an error that the user can correct; the stack before it if `is_verbose`.

    Any other error is exit code 3, because 1 says that a job found something. Spark's own is one line too. Ctrl-C is
    exit code 130. What the pipeline warns of is a line on standard error.
    """
    try:
        with _printed_warnings():
            yield
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        line, code = user_error_line(error), USER_ERROR
        if line is None and type(error).__module__.partition(".")[0] in _OF_SPARK:
            line = f"Spark: {spark_error_line(error)}"
            if "No module named 'pocketmq" in str(error):
                line = NO_PACKAGE
            elif _OF_TEXTS.isdisjoint(kind.__name__ for kind in type(error).__mro__):
                line, code = f"{line} (--verbose prints the stack)", FAILED
        if is_verbose or line is None:
            click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
        if line is None:
            sys.exit(FAILED)
        click.echo(f"pocketmq: {line}", err=True)
        sys.exit(code)


class _WarningLines(logging.Handler):
    """Prints each warning as a line, in the way of a job's errors."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"pocketmq: {record.getMessage()}", err=True)


@contextmanager
def _printed_warnings() -> Iterator[None]:
    log = logging.getLogger("pocketmq.pipeline")
    if any(isinstance(handler, _WarningLines) for handler in log.handlers):
        yield
        return
    handler, client = _WarningLines(logging.WARNING), logging.getLogger("pocketmq.client")
    # The client's own warnings of each lost connection are for programs: the pipeline says what it waits for.
    nowhere = logging.NullHandler()
    log.addHandler(handler)
    client.addHandler(nowhere)
    try:
        yield
    finally:
        log.removeHandler(handler)
        client.removeHandler(nowhere)


@contextmanager
def _user_error_if_spark_does_not_start(master: str | None, memory: str | None) -> Iterator[None]:
    """`OptionError`, with what was asked for, for an error of Spark within the `with`."""
    try:
        yield
    except PipelineError:
        raise
    except Exception as error:
        given = (("--master", master), ("--memory", memory))
        asked = [f"{option} {value.partition(';')[0]}" for option, value in given if value]  # without a token
        words = f" with {' and '.join(asked)}" if asked else ""
        raise OptionError("Spark", f"does not start{words}: {spark_error_line(error)}") from error


def _is_not_interrupt_stack(record: logging.LogRecord) -> bool:
    """Whether to log a record: py4j logs a stack trace for Ctrl-C, which is not an error.

    At Ctrl-C PySpark cancels its jobs by a call on the connection that may be within a call: a RuntimeError of Python.
    """
    if record.msg == "KeyboardInterrupt while sending command.":
        return False
    error = record.exc_info[1] if record.exc_info else None
    while error is not None:
        if isinstance(error, RuntimeError) and str(error).startswith("reentrant call inside"):
            return False
        error = error.__context__
    return True


@contextmanager
def defer_interrupts() -> Iterator[list[int]]:
    """Ctrl-C is only recorded: a JVM that loses its driver while it starts would never end."""
    interrupts: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield interrupts  # SIGINT is ignored, or has another handler
        return

    def record(number: int, _: object) -> None:
        interrupts.append(number)

    signal.signal(signal.SIGINT, record)
    try:
        yield interrupts
    finally:
        if signal.getsignal(signal.SIGINT) is record:  # a running Spark has its own handler
            signal.signal(signal.SIGINT, before)


@contextmanager
def ended_by_signals(ended: threading.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM set `ended`, instead of what Python and Spark do with them."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda *_: ended.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check_dependencies() -> None:
    """`PipelineError` if the packages of the extra are not installed."""
    if not all(find_spec(name) for name in ("pyspark", "pyarrow", "numpy")):
        raise PipelineError("the pipeline needs its extra: pip install 'pocketmq[spark]'")


def check_outputs(outputs: Outputs) -> None:
    """`OptionError` for files that could not be written at the end."""
    for option, text in (("--json-file", outputs.json_file), ("--html", outputs.html_file)):
        if text is None:
            continue
        if not Path(text).absolute().parent.is_dir():
            raise OptionError(option, f": folder {Path(text).absolute().parent} does not exist")
        if Path(text).is_dir():
            raise OptionError(option, f": {text} is a folder")
    if outputs.parquet_folder is not None and Path(outputs.parquet_folder).is_file():
        raise OptionError("--parquet", f": {outputs.parquet_folder} is a file")


def user_error_line(error: BaseException) -> str | None:
    """The message of an error of this package, also if Spark wrapped it in its own; None for any other error.

    A job has no option for a path inside a store, and none that skips damage. Spark has the error as a text only.
    """
    if isinstance(error, PathError) and error.option == PATH:
        return error.problem
    if isinstance(error, CorruptStoreError) and error.advice:
        return f"{error.problem}; pocketmq pipeline audit lists all damage"
    if isinstance(error, PipelineError | OSError):
        return str(error)
    for line in str(error).splitlines():
        kind, separator, text = line.strip().partition(": ")
        if separator and kind.startswith(_ERRORS_MODULE):
            return text
    return None


def spark_error_line(error: BaseException) -> str:
    """The message of a Spark error in one line: after py4j's introduction, before Java's stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    of_java = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return (of_java or lines or [type(error).__name__])[0]
