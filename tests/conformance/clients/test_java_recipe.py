"""docs/java.md with Maven, as a reader would use it: its extension, its test and its pom, and nothing else.

The blocks of the document are the files of the project. Run twice: with a server that the extension starts, and under
`pocketmq exec`. A planted duplicate must fail, so that a clean verdict means something.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[3] / "docs" / "java.md"
SECONDS = 170
PLANTED = """
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PocketMq.class)
class PlantedTest {
    @Test
    void whatIsDeliveredTwiceIsNotClean(PocketMq mq) throws Exception {
        mq.post("/api/topics", "{'name': 'orders', 'queues': 1}");
        mq.post("/api/topics/orders/messages", "{'text': 'order 17'}");
        mq.post("/api/faults", "{'effect': 'duplicate', 'code': 'PULL_MESSAGE', 'topic': 'orders', 'times': null}");
        CountDownLatch billed = new CountDownLatch(1);
        DefaultMQPushConsumer billing = new DefaultMQPushConsumer("billing");
        billing.setHeartbeatBrokerInterval(1000);
        billing.subscribe("orders", "*");
        billing.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            billed.countDown();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        billing.start();
        try {
            assertTrue(billed.await(20, TimeUnit.SECONDS));
        } finally {
            billing.shutdown();
        }
        assertThrows(AssertionError.class, () -> mq.assertClean("orders", "billing"));
        mq.assertClean("orders", "billing", "duplicated");
        assertThrows(IllegalStateException.class, () -> mq.assertClean("ordres", "billing"));
    }
}
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, peers: None) -> Path:
    """A Maven project of the document's blocks, and its dependencies."""
    folder = tmp_path_factory.mktemp("billing")
    sources = folder / "src" / "test" / "java"
    sources.mkdir(parents=True)
    for source in [*blocks("java"), PLANTED]:
        name = re.search(r"^(?:public final )?class (\w+)", source, re.MULTILINE)
        assert name is not None
        (sources / f"{name[1]}.java").write_text(source, "utf-8")
    [pom] = blocks("xml")
    (folder / "pom.xml").write_text(pom, "utf-8")
    fetched = mvn(folder, "test-compile", "surefire:help")
    if fetched.returncode and "Could not" in fetched.stdout:
        pytest.skip(f"Maven cannot fetch the dependencies: {fetched.stdout[-300:]}")
    assert fetched.returncode == 0, fetched.stdout[-3000:]
    return folder


def mvn(project: Path, *words: str, before: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    """With `pocketmq` on the PATH, and without a server of somebody else."""
    environment = {
        key: value for key, value in os.environ.items() if key not in ("NAMESRV_ADDR", "POCKETMQ_ADMIN")
    }
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    command = [*before, "mvn", "--batch-mode", "--quiet", *words]
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def ran(project: Path) -> int:
    """Tests that surefire has reported; all good."""
    reports = [
        one.read_text("utf-8") for one in sorted((project / "target" / "surefire-reports").glob("*.txt"))
    ]
    found = [re.search(r"Tests run: (\d+), Failures: 0, Errors: 0, Skipped: 0", report) for report in reports]
    assert all(found), reports
    return sum(int(one[1]) for one in found if one is not None)


def test_mvn_test_starts_a_server_and_ends_it(project: Path) -> None:
    tests = mvn(project, "test")
    assert tests.returncode == 0, tests.stdout[-3000:]
    assert ran(project) == 4
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"{sys.executable} {Path(sys.executable).parent}/pocketmq serve --ephemeral --port 0" not in left


def test_under_exec_the_tests_use_its_server(project: Path) -> None:
    tests = mvn(project, "test", before=("pocketmq", "exec", "--admin-port", "0", "--"))
    assert tests.returncode == 0, tests.stdout[-3000:]
    assert ran(project) == 4
