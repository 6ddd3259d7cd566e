"""The programs of docs/grpc.md, word for word: the first ones at a server without topics and groups."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pocketmq.testing import EmbeddedServer

from conformance.clients.foreign import go_program, grpc_python_packages
from conformance.official.jars import PeersUnavailable
from conformance.official.local_proxy import LIBRARIES, library

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs" / "grpc.md"
GO_MODULE = ROOT / "tests" / "conformance" / "grpc_clients" / "programs" / "go_talk"
ADDRESS = "127.0.0.1:8081"
JAVA_HEAD = """
import java.time.Duration;
import java.util.Map;
import org.apache.rocketmq.client.apis.*;
import org.apache.rocketmq.client.apis.consumer.*;
import org.apache.rocketmq.client.apis.message.*;
import org.apache.rocketmq.client.apis.producer.*;

public class Document {
    public static void main(String[] words) throws Exception {
"""
GO_HEAD = """package main

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

func main() {
"""


def program(language: str, address: str) -> str:
    """The document's program in this language."""
    found = re.search(rf"```{language}\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    assert ADDRESS in found[1]
    return found[1].replace(ADDRESS, address)


def python(folder: Path, address: str) -> tuple[list[str], dict[str, str]]:
    end = "    print('got', message.body.decode())\nconsumer.shutdown()\nproducer.shutdown()\n"
    source = folder / "document.py"
    source.write_text(program("python", address) + end, encoding="utf-8")
    return [sys.executable, str(source)], {"PYTHONPATH": str(grpc_python_packages())}


def java(folder: Path, address: str) -> tuple[list[str], dict[str, str]]:
    text = program("java", address).replace(
        "consumer.ack(message);",
        'consumer.ack(message); System.out.println("got " + '
        "java.nio.charset.StandardCharsets.UTF_8.decode(message.getBody()));",
    )
    end = "consumer.close(); producer.close(); System.exit(0); } }\n"
    source = folder / "Document.java"
    source.write_text(JAVA_HEAD + text + end, encoding="utf-8")
    home = f"-Duser.home={folder}"
    return ["java", home, "-cp", library(LIBRARIES["5.2.0"]), str(source)], {}


def go(folder: Path, address: str) -> tuple[list[str], dict[str, str]]:
    module = folder / "go_document"
    module.mkdir()
    for path in GO_MODULE.glob("go.*"):
        shutil.copy(path, module)
    end = '\tfmt.Println("got", string(messages[0].GetBody()))\n}\n'
    (module / "main.go").write_text(GO_HEAD + program("go", address) + end, encoding="utf-8")
    return [str(go_program(module))], {"HOME": str(folder)}


@pytest.mark.timeout(400)
@pytest.mark.parametrize("language", [python, java, go])
def test_the_first_program_of_the_document_runs(
    language: Callable[[Path, str], tuple[list[str], dict[str, str]]], tmp_path: Path
) -> None:
    with EmbeddedServer(grpc_port=0) as server:
        try:
            command, environment = language(tmp_path, server.grpc_endpoint)
        except PeersUnavailable as error:
            pytest.skip(str(error))
        ended = subprocess.run(
            command,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert "got hello" in ended.stdout


@pytest.mark.timeout(400)
def test_the_test_of_the_document_passes(tmp_path: Path) -> None:
    [text] = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)[1:]
    (tmp_path / "test_document.py").write_text(text, encoding="utf-8")
    try:
        environment = {**os.environ, "PYTHONPATH": str(grpc_python_packages())}
    except PeersUnavailable as error:
        pytest.skip(str(error))
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-3000:]
    assert "1 passed" in ended.stdout
