"""Limits of a whole run; what is beyond one is listed above pytest's closing line. Both conftests register it.

Time: a test that is not marked `slow` takes two seconds at most. The wall's time says little on a machine that does
other work, so a slow test is only listed; at night (POCKETMQ_NIGHTLY), when the machine has nothing else to do, it
fails. Time in which the machine made a test wait does not count there (`stopwatch.py`).

Second tries: `--reruns 1` lets a test of Java programs that misses a deadline run once more. More than a few of them in
one run are no coincidence: the run fails, though each has passed in the end.
"""

import os
from collections.abc import Generator, Iterable

import pytest

from stopwatch import Stopwatch, load

SLOW_SECONDS = 2.0
MAY_BE_SLOW = ("slow", "soak", "interop", "spark")
RERUNS_AT_MOST = 3
IS_NIGHT = "POCKETMQ_NIGHTLY" in os.environ


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    watch = Stopwatch()
    result = yield
    seconds = watch.seconds
    if IS_NIGHT and seconds > SLOW_SECONDS * load() and not any(map(item.get_closest_marker, MAY_BE_SLOW)):
        pytest.fail(f"took {seconds:.1f} s: mark it slow, or make it quicker", pytrace=False)
    return result


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and len(_reports(session.config, "rerun")) > RERUNS_AT_MOST:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    slow = sorted(unmarked_and_slow(_reports(config, "passed")), key=lambda one: -one.duration)
    if slow:
        terminalreporter.section(f"not marked slow, and above {SLOW_SECONDS:g} s")
        for report in slow:
            terminalreporter.write_line(f"{report.duration:6.1f} s  {report.nodeid}")
    reruns = _reports(config, "rerun")
    if len(reruns) > RERUNS_AT_MOST:
        terminalreporter.section("too many second tries", red=True)
        terminalreporter.write_line(f"{len(reruns)} tests ran twice; {RERUNS_AT_MOST} may")


def unmarked_and_slow(reports: Iterable[pytest.TestReport]) -> Iterable[pytest.TestReport]:
    for report in reports:
        if (
            report.when == "call"
            and report.duration > SLOW_SECONDS
            and not report.keywords.keys() & MAY_BE_SLOW
        ):
            yield report


def _reports(config: pytest.Config, kind: str) -> list[pytest.TestReport]:
    """Of the process that prints; the others have none."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return [] if reporter is None else reporter.stats.get(kind, [])
