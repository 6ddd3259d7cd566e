"""Journal rows: what each column says about an entry."""

import subprocess
import sys


def test_requests_have_their_official_names_in_a_process_that_imports_nothing_else() -> None:
    program = (
        "from pocketmq.protocol.requests.names import request_name as n; print(n(34), n(11), n(310), n(9999))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["HEART_BEAT", "PULL_MESSAGE", "SEND_MESSAGE_V2", "9999"]
