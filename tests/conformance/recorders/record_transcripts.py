"""Record the conversations of `conformance/requests/` again, from the official brokers.

    PYTHONPATH=tests python -m conformance.recorders.record_transcripts [NAME ...]

A name is that of a file in `conformance/requests/recorded/`, without `.txt`. Needs Java, Maven and network namespaces.
"""

import sys
import tempfile
from pathlib import Path

from conformance.official.servers import OfficialServer
from conformance.requests.conversations import TRANSCRIPTS


def main(names: list[str]) -> None:
    for transcript in TRANSCRIPTS:
        if names and transcript.file.stem not in names:
            continue
        with tempfile.TemporaryDirectory(prefix="transcript-") as home:
            official = OfficialServer(transcript.line, Path(home), broker_conf=transcript.settings)
            said = transcript.play(official)
        transcript.file.write_text("\n".join(said) + "\n", encoding="utf-8")
        print(f"{transcript.file.stem}: {len(said)} answers", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
