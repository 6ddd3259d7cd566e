"""Record `conformance/access/recorded/` again: what the official brokers' access control lets pass.

    PYTHONPATH=tests python -m conformance.recorders.record_decisions

Needs Java, Maven and network namespaces.
"""

import tempfile
from pathlib import Path

from conformance.access import decisions
from conformance.official.servers import OfficialServer
from conformance.requests.transcripts import LINES


def main() -> None:
    for line in LINES:
        with tempfile.TemporaryDirectory(prefix="decisions-") as home:
            official = OfficialServer(line, Path(home), broker_conf=decisions.SETTINGS[line])
            found = decisions.play(official, line)
        text = "".join(f"{one}\n" for one in found)
        decisions.recorded_file(line).write_text(text, encoding="utf-8")
        print(f"{decisions.recorded_file(line).stem}: {len(found)} codes", flush=True)


if __name__ == "__main__":
    main()
