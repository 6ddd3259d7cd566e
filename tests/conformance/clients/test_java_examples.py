"""`java/` and its examples with Maven, as a reader would use them: the module is installed, then depended on.

The module and the JUnit example run in two forks of surefire, and have tests that run side by side in one JVM.
"""

import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from conformance.clients.test_examples_of_languages import copied, ended

SECONDS = 400
"""Of one Maven build, which downloads what it needs, on a busy machine."""
MODULE = "pocketmq-junit5"

pytestmark = pytest.mark.timeout(2 * SECONDS)


def mvn(project: Path, *words: str, before: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    ran = ended(project, *before, "mvn", "--batch-mode", *words, seconds=SECONDS)
    if ran.returncode and "Could not transfer" in ran.stdout:
        pytest.skip(f"Maven cannot fetch the dependencies: {ran.stdout[-300:]}")
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-3000:]
    return ran


def passed(project: Path) -> set[str]:
    """The names of the tests that surefire reports; none may have failed or been skipped."""
    names = set()
    for report in sorted((project / "target" / "surefire-reports").glob("*.xml")):
        for case in ET.parse(report).iter("testcase"):
            for outcome in ("failure", "error", "skipped"):
                assert case.find(outcome) is None, report.read_text("utf-8")
            names.add(re.sub(r"\(.*", "", case.get("name", "")))
    return names


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory, peers: None) -> Path:
    """The module, built, tested and installed, so that the examples find it."""
    project = copied("java", tmp_path_factory.mktemp("module"))
    mvn(project, "install")
    return project


def test_the_module_passes_its_tests_and_is_complete(module: Path) -> None:
    assert {
        "aTestSeesItsOwnMessages",  # side by side in one JVM
        "itEndsWithItsJvmEvenIfThatIsKilled",
        "theFirstRetryOfAGroupWaitsForItsDelayOnly",
        "whatIsDeliveredTwiceIsNotClean",
    } <= passed(module)
    version = re.search(r"<version>(.*?)</version>", (module / "pom.xml").read_text("utf-8"))
    assert version is not None
    made = {path.name for path in (module / "target").glob("*.jar")}
    assert made == {f"{MODULE}-{version[1]}{part}.jar" for part in ("", "-sources", "-javadoc")}


def test_junit(module: Path, tmp_path: Path) -> None:
    project = copied("examples/junit5", tmp_path)
    ran = mvn(project, "test")
    assert passed(project) == {
        "aBusyBrokerIsTriedAgain",
        "anOrderIsStoredOnce",
        "anOrderThatFailsIsTriedAgain",
        "everyOrderIsBilledOnce",
    }
    assert "WARN" not in ran.stdout + ran.stderr


def test_under_exec_forks_do_not_share_its_server(module: Path, tmp_path: Path) -> None:
    project = copied("examples/junit5", tmp_path)
    mvn(project, "test", before=("pocketmq", "exec", "--admin-port", "0", "--"))
    assert "everyOrderIsBilledOnce" in passed(project)


@pytest.mark.parametrize("version", ["3.3.5", "3.4.13"])
def test_spring_boot(version: str, module: Path, tmp_path: Path) -> None:
    project = copied("examples/spring-boot", tmp_path)
    printed = mvn(project, "test", f"-Dspring-boot.version={version}").stdout
    assert f"(v{version})" in printed
    assert passed(project) == {"aBusyBrokerIsTriedAgain", "anOrderIsBilled"}
