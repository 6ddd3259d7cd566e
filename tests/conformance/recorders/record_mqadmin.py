"""Record what mqadmin 5.5.0 prints: `tests/conformance/admin/mqadmin_55.txt`. Needs Java, Maven and network namespaces.

PYTHONPATH=tests python -m conformance.recorders.record_mqadmin
"""

import tempfile
from pathlib import Path

from conformance.admin.recorded_commands import RECORDED, play, prepared
from conformance.official.servers import OfficialServer
from conformance.servers.raw_client import RawClient

with tempfile.TemporaryDirectory(prefix="mqadmin-") as home:
    official = OfficialServer("5.5", Path(home), broker_conf={"mappedFileSizeCommitLog": 16 << 20})
    with official, RawClient(official) as client:
        prepared(client)
        answers = play(official.programs.admin_shell("5.5"))
RECORDED.write_text("".join(answers), encoding="utf-8")
print(f"{len(answers)} commands")
