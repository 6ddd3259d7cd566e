"""`pocketmq proxy` as scripts use it: the first line, the bytes between, a clean stop."""

import signal
import socket
import subprocess
import sys
import time

import pytest

from cli_runs import pocketmq, refusal

END_SECONDS = 20


@pytest.mark.slow
def test_a_proxy_holds_back_answers_and_ends_cleanly() -> None:
    with socket.create_server(("127.0.0.1", 0)) as target:
        port = target.getsockname()[1]
        words = ("--listen", "0", "--target", f"127.0.0.1:{port}", "--latency", "0.1", "--slice-bytes", "3")
        process = subprocess.Popen(
            [sys.executable, "-m", "pocketmq.cli", "proxy", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("PROXY_ADDR=127.0.0.1:")
            with socket.create_connection(("127.0.0.1", int(line.rpartition(":")[2])), timeout=5) as client:
                server, _ = target.accept()
                with server:
                    client.sendall(b"question")
                    client.shutdown(socket.SHUT_WR)
                    asked = b""
                    while data := server.recv(100):
                        asked += data
                    begun = time.monotonic()
                    server.sendall(b"answer")
                    answered = client.recv(100)
                    assert time.monotonic() - begun >= 0.1
                    while len(answered) < 6:
                        answered += client.recv(100)
            assert (asked, answered) == (b"question", b"answer")
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=END_SECONDS)
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_a_port_that_is_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = pocketmq("proxy", "--listen", str(port), "--target", "h:1")
    assert f"cannot listen on 127.0.0.1:{port}" in refusal(result)
