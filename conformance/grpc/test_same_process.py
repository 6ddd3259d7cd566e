"""The official Python client in the same process as the server: their event loops, protobuf pools and threads agree."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.clients.foreign import grpc_python_packages
from conformance.official.jars import PeersUnavailable

PROGRAM = Path(__file__).with_name("same_process_program.py")


def test_client_and_server_share_a_process() -> None:
    try:
        packages = grpc_python_packages()
    except PeersUnavailable as error:
        pytest.skip(str(error))
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), "40"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert json.loads(ended.stdout.splitlines()[-1]) == {"simple": True, "push": True, "logged": True}
    assert "BlockingIOError" not in ended.stderr
    assert "Traceback" not in ended.stderr
