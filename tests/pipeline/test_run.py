"""How a job runs: errors that the user can correct are one line before Spark starts, and each end has its exit code."""

import contextlib
import json
import logging
import os
import re
import shlex
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pocketmq.cli.pipeline.command import JOBS, pipeline
from pocketmq.client.access import Access
from pocketmq.pipeline.errors import NoJavaError, OptionError
from pocketmq.pipeline.jobs.answers import run as job_run
from pocketmq.pipeline.jobs.report.output_folders import (
    ERROR_IF_EXISTS,
    MARKER,
    OVERWRITE,
    replaced,
    write_mode,
)
from pocketmq.pipeline.jobs.report.report import Report, Section
from pocketmq.pipeline.jobs.sql.arrow_frame import frame_of_rows
from pocketmq.pipeline.spark.session import session
from pocketmq.pipeline.tables.files.locations import absolute
from pocketmq.pipeline.tables.planning.access_names import source_options
from pocketmq.pipeline.tables.planning.topic_options import read_source_options
from pocketmq.protocol.journal_frames import MAGIC, encode_head
from pyspark.errors import AnalysisException, StreamingQueryException

from pipeline.commands import run
from pipeline.test_report import FarFrame


class FakeSession:
    """Replaces the Spark session and records its settings."""

    def __init__(self) -> None:
        self.started: dict[str, Any] = {}
        self.is_stopped = False
        self.master = "local[1]"
        self.level = ""

    @property
    def sparkContext(self) -> "FakeSession":
        return self

    def setLogLevel(self, level: str) -> None:
        self.level = level

    def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> FakeSession:
    fake = FakeSession()

    def start(name: str, **options: Any) -> FakeSession:
        fake.started = options
        return fake

    monkeypatch.setattr(session, "pocketmq_session", start)
    return fake


@pytest.mark.parametrize(
    ("words", "output"),
    [
        ("audit --store {0}/nosuch", "--store: {0}/nosuch/commitlog is not a folder"),
        ("audit --store {0} --memory lots", "--memory must be a size such as 512m or 2g, got 'lots'"),
        (
            "audit --store {0} --master local[x]",
            "--master must be local[N], local[*], spark://HOST:PORT, yarn, k8s://URL or sc://HOST:PORT, got 'local[x]'",
        ),
        (
            "audit --store {0} --conf spark.executor.memory",
            "--conf must be KEY=VALUE, such as spark.executor.memory=2g, got 'spark.executor.memory'",
        ),
        ("audit --store {0} --json-file {0}/no/r.json", "--json-file: folder {0}/no does not exist"),
        ("audit --store {0} --html {0}", "--html: {0} is a folder"),
        ("audit --store {0} --parquet {0}/old.journal", "--parquet: {0}/old.journal is a file"),
        ("duplicates", "one of --store DIR and --namesrv ADDR is required"),
        ("duplicates --store {0} -n 127.0.0.1:1", "one of --store DIR and --namesrv ADDR is read, not both"),
        ("duplicates -n 127.0.0.1:1", "--topics is required with --namesrv"),
        ("duplicates --store {0} --since 5 --until 5", "--since must be before --until"),
        ("latency", "one of --journal DIR, --store DIR and --namesrv ADDR is required"),
        ("latency -n nonsense", "--namesrv must be host:port, or several separated by ;, got 'nonsense'"),
        ("lag -n nonsense", "--namesrv must be host:port, or several separated by ;, got 'nonsense'"),
        ("lag -n 127.0.0.1:1 --topics T --access-key a", "--access-key, --secret-key: set both or none"),
        ("lag -n 127.0.0.1:1 --topics T --tls-trust f", "--tls is required with --tls-trust"),
        ("lag -n 127.0.0.1:1 --topics T --tls --tls-trust {0}/no", "--tls-trust, --tls-cert, --tls-key:"),
        (
            "replay -n a:1 --topics T --to U --since 3 --until 1970-01-01T00:00:00.003",
            "--since must be before --until",
        ),
        (
            "replay -n a:1 --topics T --to U --to-namesrv b",
            "--to-namesrv must be host:port, or several separated by ;, got 'b'",
        ),
        ("export --store {0} --to {0}", "--to: {0} holds "),
        (
            "ingest -n a:1 --topics T --to d --checkpoint c --every soon",
            "--every must be a number with ms, s, m or h",
        ),
        (
            "ingest -n a:1 --topics T --to d --checkpoint c --bad b",
            "--schema, --message and --bad are for --decode",
        ),
        (
            "ingest -n a:1 --topics T --to d --checkpoint c --decode json",
            "--schema is required with --decode json",
        ),
        (
            "ingest -n a:1 --topics T --to d --checkpoint c --decode json --schema id",
            "--bad is required with --decode",
        ),
        ("behaviour {0}/nosuch", "JOURNALS: {0}/nosuch is not a journal"),
        ("behaviour {0}/commitlog", "JOURNALS: {0}/commitlog is not a journal"),
        ("behaviour {0}/newer.journal", "{0}/newer.journal: a journal of version 7; versions up to 1"),
        ("behaviour {0}/whole {0}", "JOURNALS: {0}/whole and {0} are parts of one journal, broker-a@1:"),
        ("behaviour {0}/other", "{0}/other: not a journal: it begins with"),
    ],
)
def test_what_the_user_can_correct_is_one_line_and_code_2_before_spark_starts(
    spark: FakeSession, tmp_path: Path, words: str, output: str
) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020}").touch()
    (tmp_path / "old.journal").write_bytes(MAGIC + b"\x01")
    (tmp_path / "newer.journal").write_bytes(MAGIC + b"\x07more")
    (tmp_path / "whole").mkdir()
    for file in (tmp_path / "whole" / "1.journal", tmp_path / "a.journal"):
        file.write_bytes(encode_head({"brokerName": "broker-a", "startedNs": 1}))
    (tmp_path / "other").write_text("hello, there")
    ended = run(*words.format(tmp_path).split())
    assert ended.exit_code == 2
    assert ended.stderr.startswith(f"pocketmq: {output.format(tmp_path)}")
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""
    assert spark.started == {}


def run_built(build: Callable[[Any], Report], **options: Any) -> None:
    outputs = dict.fromkeys(("json_file", "parquet_folder", "html_file"))
    job_run.run_job(
        "test", build, **{"master": "local[1]", "memory": "1g", **outputs, "quiet": False, **options}
    )


def nothing(_: Any) -> Report:
    return Report("Title", "", [])


def raising(error: Exception) -> Callable[[Any], Report]:
    def build(_: Any) -> Report:
        raise error

    return build


@contextmanager
def ends(code: int) -> Iterator[None]:
    with pytest.raises(SystemExit) as ended:
        yield
    assert ended.value.code == code


def test_ctrl_c_stops_the_session_and_is_code_130_without_output(
    spark: FakeSession, caplog: pytest.LogCaptureFixture
) -> None:
    def interrupted(_: Any) -> Report:
        logging.error("KeyboardInterrupt while sending command.")  # as py4j does, with its stack
        raise KeyboardInterrupt

    with ends(130):
        run_built(interrupted)
    assert spark.is_stopped
    assert caplog.records == []


def test_ctrl_c_in_a_call_of_spark_prints_no_stack_of_py4j(
    spark: FakeSession, caplog: pytest.LogCaptureFixture
) -> None:
    """PySpark's handler cancels the jobs by a second call on the connection whose call it interrupts."""

    def interrupted(_: Any) -> Report:
        try:
            try:
                raise RuntimeError("reentrant call inside <_io.BufferedReader name=3>")
            except RuntimeError:
                raise ConnectionError("Error while sending or receiving")  # noqa: B904
        except ConnectionError:
            logging.exception("Exception while sending command.")  # as py4j does
        logging.error("Exception while sending command.")  # one for another reason
        raise KeyboardInterrupt

    with ends(130):
        run_built(interrupted)
    assert [record.exc_info for record in caplog.records] == [None]


@pytest.mark.usefixtures("ctrl_c_as_on_a_terminal")
def test_ctrl_c_while_spark_starts_waits_until_it_can_be_stopped(
    spark: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = session.pocketmq_session

    def interrupted(*words: Any, **options: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return started(*words, **options)

    monkeypatch.setattr(session, "pocketmq_session", interrupted)
    with ends(130):
        run_built(lambda _: pytest.fail("the job began"))
    assert spark.is_stopped
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_job_keeps_is_freed_before_its_session_ends(spark: FakeSession) -> None:
    freed: list[bool] = []

    for build, code in ((nothing, None), (raising(OptionError("a", "mistake")), 2)):
        spark.is_stopped = False
        with ends(code) if code else nullcontext():
            run_built(build, before_stop=lambda: freed.append(spark.is_stopped))
    assert freed == [False, False]
    assert spark.is_stopped


def test_findings_are_exit_code_1_and_a_report_without_findings_is_0(
    spark: FakeSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report("Title", "Lead [of/it].", [], ["one thing"])
    file = tmp_path / "r.json"
    with ends(1):
        run_built(lambda _: report, json_file=str(file))
    assert json.loads(file.read_text())["findings"] == ["one thing"]
    output = capsys.readouterr().out
    assert "1 finding\n  one thing" in output
    assert "Lead [of/it]." in output
    assert output.endswith(f"Written: {file}\n")
    run_built(lambda _: report, fails_on_findings=False)
    run_built(nothing)
    assert spark.level == "OFF", "the log would show Java's stack of what is one line here"


def test_a_job_leaves_the_log_of_a_cluster_alone(spark: FakeSession) -> None:
    spark.master = "spark://h:1"
    run_built(nothing)
    assert spark.level == ""
    run_built(nothing, is_verbose=True)
    assert spark.level == "INFO"


def test_a_job_leaves_master_and_settings_to_spark_unless_they_are_given(spark: FakeSession) -> None:
    run_built(nothing, master=None, memory=None)
    assert (spark.started["master"], spark.started["memory"], spark.started["settings"]) == (None, None, {})
    run_built(nothing, settings=("spark.a=1", "spark.b= x=y "))
    assert spark.started["settings"] == {"spark.a": "1", "spark.b": "x=y"}


def test_a_verbose_job_prints_the_log_and_the_stack_of_an_error(
    spark: FakeSession, capsys: pytest.CaptureFixture[str]
) -> None:
    with ends(2):
        run_built(raising(OptionError("a", "mistake")), is_verbose=True)
    assert spark.level == "INFO"
    printed = capsys.readouterr().err
    assert printed.startswith("Traceback")
    assert printed.endswith("pocketmq: a mistake\n")


@pytest.mark.parametrize(("is_terminal", "quiet"), [(True, False), (False, False), (True, True)])
def test_progress_is_shown_on_terminals_only(
    spark: FakeSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_terminal: bool,
    quiet: bool,
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal, raising=False)
    run_built(nothing, quiet=quiet)
    assert spark.started["show_progress"] is (is_terminal and not quiet)
    notice = "pocketmq test: Spark starts, which takes some seconds\n"
    assert capsys.readouterr().err == (notice if is_terminal and not quiet else "")


@pytest.mark.parametrize(
    ("error", "output"),
    [
        (NoJavaError("Spark needs Java 17"), "Spark needs Java 17"),
        (
            RuntimeError("An error occurred while calling None.x.\n: java.lang.X: no master\n\tat y"),
            "Spark does not start with --master local[1] and --memory 1g: java.lang.X: no master",
        ),
    ],
)
def test_a_session_that_does_not_start_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, output: str
) -> None:
    def start(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(session, "pocketmq_session", start)
    with ends(2):
        run_built(nothing)
    assert capsys.readouterr().err == f"pocketmq: {output}\n"


@pytest.mark.parametrize(
    ("error", "code", "output"),
    [
        (
            AnalysisException("[PATH_NOT_FOUND] Path does not exist: x.\n'Project\n"),
            2,
            "pocketmq: Spark: [PATH_NOT_FOUND] Path does not exist: x.\n",
        ),
        (
            StreamingQueryException("[STREAM_FAILED] Query terminated: no space left\n\tat y"),
            3,
            "pocketmq: Spark: [STREAM_FAILED] Query terminated: no space left (--verbose prints the stack)\n",
        ),
        (RuntimeError("a bug"), 3, "RuntimeError: a bug\n"),
    ],
)
def test_a_job_that_fails_never_ends_as_if_it_had_found_something(
    spark: FakeSession, capsys: pytest.CaptureFixture[str], error: Exception, code: int, output: str
) -> None:
    with ends(code):
        run_built(raising(error))
    printed = capsys.readouterr().err
    assert printed.endswith(output)
    assert ("Traceback" in printed) is isinstance(error, RuntimeError)


def test_no_table_replaces_a_folder_that_holds_other_files(spark: FakeSession, tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "thesis.txt").touch()
    frame = frame_of_rows({"n": pa.int64()}, [(1,)])
    report = Report("Title", "", [Section("first", "First", frame), Section("rows", "Rows", frame)])
    with ends(2):
        run_built(lambda _: report, parquet_folder=str(tmp_path))
    assert (tmp_path / "rows" / "thesis.txt").exists()
    assert not (tmp_path / "first").exists()
    (tmp_path / "rows" / "thesis.txt").unlink()
    for _ in range(2):
        run_built(lambda _: report, parquet_folder=str(tmp_path))
    assert pq.read_table(tmp_path / "rows").to_pylist() == [{"n": 1}]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_only_what_a_job_has_written_is_replaced(tmp_path: Path, scheme: str) -> None:
    folder = f"{scheme}{tmp_path}"
    assert write_mode("--to", f"{folder}/new") == write_mode("--to", folder) == OVERWRITE
    with replaced("--to", folder) as mode:
        assert mode == OVERWRITE
        (tmp_path / "date=2026-01-01").mkdir()
        (tmp_path / "part-0.parquet").touch()
    assert write_mode("--to", folder) == OVERWRITE
    (tmp_path / MARKER).unlink()
    with pytest.raises(OptionError, match=r"--to: .* holds date=2026-01-01, and no job has written it"):
        write_mode("--to", folder)


def test_a_write_that_fails_leaves_a_folder_that_may_be_written_again(tmp_path: Path) -> None:
    with contextlib.suppress(RuntimeError), replaced("--to", str(tmp_path)):
        (tmp_path / "part-0.parquet").touch()
        raise RuntimeError
    assert write_mode("--to", str(tmp_path)) == OVERWRITE


def test_where_nobody_can_look_spark_refuses_what_exists() -> None:
    assert write_mode("--to", "nofs://bucket/x") == ERROR_IF_EXISTS


def test_paths_are_those_of_the_command_whatever_the_engines_folder_is(
    spark: FakeSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute("out") == str(tmp_path / "out")
    assert absolute("./a/../b") == str(tmp_path / "b")
    for same in ("/out", "s3a://bucket/x", "file:/x", "hdfs://name:8020/x", ""):
        assert absolute(same) == same
    frame = FarFrame(0)
    run_built(lambda _: Report("Title", "", [Section("rows", "Rows", frame)]), parquet_folder="out")
    assert frame.written == [("overwrite", str(tmp_path / "out" / "rows"))]


def test_what_the_command_line_says_reaches_the_source() -> None:
    access = Access(access_key="a", secret_key="b", security_token="c", uses_tls=True, address_map="b:1=c:2")
    source = {"nameServer": "127.0.0.1:1", "subscribe": "T", **source_options(access)}
    assert read_source_options(source, is_stream=False).access == access


def test_every_job_has_an_example_in_the_document_that_its_options_allow() -> None:
    document = Path(__file__).parents[2] / "docs" / "jobs.md"
    examples = re.findall(r"`pocketmq pipeline ([a-z]+) ?(.*?)`", document.read_text(encoding="utf-8"))
    assert {job for job, _ in examples} == JOBS.keys() - {"demo"}
    for job, words in examples:
        command = pipeline.get_command(click.Context(pipeline), job)
        command.make_context(job, shlex.split(words))
