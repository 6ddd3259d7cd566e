"""The examples in Python pass their own tests as a reader would run them; the compose file says what the program knows.

Those in Java, Go and JavaScript: `conformance/clients/`.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pocketmq.cli.serve import serve
from pocketmq.testing import EmbeddedServer, RocketMQ

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tests", "needs"), [("pytest", 6, "pytest_asyncio"), ("fastapi", 3, "fastapi")]
)
def test_an_example_passes_its_tests(name: str, tests: int, needs: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"not installed: {needs}")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")  # not the settings of this repository
    words = ("-q", "-p", "no:cacheprovider", "-c", str(tmp_path / "pytest.ini"), "--rootdir", ".", ".")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=EXAMPLES / name, capture_output=True, text=True, check=False, timeout=50,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(rf"^{tests} passed", ran.stdout, re.MULTILINE), ran.stdout


def test_every_example_says_how_it_is_run() -> None:
    folders = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for folder in folders:
        readme = (folder / "README.md").read_text(encoding="utf-8")
        assert len(readme.splitlines()) <= 25, folder.name
        assert f"({folder.name}/README.md)" in listed


def test_the_compose_file_says_what_image_and_program_know() -> None:
    services = yaml.safe_load((EXAMPLES / "compose" / "compose.yaml").read_text(encoding="utf-8"))["services"]
    server, shop = services["rocketmq"], services["shop"]
    assert (EXAMPLES / "compose" / server["build"] / "Dockerfile").is_file()
    options = {option for parameter in serve.params for option in parameter.opts}
    assert {word for word in server["command"] if word.startswith("--")} <= options

    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    exposed = re.findall(r"^EXPOSE (.*)$", dockerfile, re.MULTILINE)[0].split()
    named = [*server["command"], *shop["environment"].values()]
    ports = {port for word in named for port in re.findall(r"rocketmq:(\d+)", word)}
    assert ports == {"10911", "9876", "8080"}
    assert ports <= set(exposed)
    assert [mapping.split(":")[0] for mapping in server["ports"]] == ["127.0.0.1"], (
        "the page has no passwords"
    )
    assert shop["depends_on"] == {"rocketmq": {"condition": "service_healthy"}}
    assert "HEALTHCHECK" in dockerfile


def test_the_program_of_the_compose_file_sends_an_order() -> None:
    services = yaml.safe_load((EXAMPLES / "compose" / "compose.yaml").read_text(encoding="utf-8"))["services"]
    with EmbeddedServer(admin_port=0) as server:
        rocketmq = RocketMQ(server)
        rocketmq.load({"topics": {"orders": 8}})
        [_, *words] = services["shop"]["command"]
        environment = {**os.environ, "POCKETMQ_ADMIN": server.admin_url}
        subprocess.run(
            [sys.executable, *words], env=environment, check=True, timeout=30, stdout=subprocess.PIPE
        )
        assert [message.text for message in rocketmq.messages("orders")] == ["order 17"]
