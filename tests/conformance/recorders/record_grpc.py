"""Record the conversations of `conformance/grpc/` again, from the official proxy.

    PYTHONPATH=tests python -m conformance.recorders.record_grpc [NAME ...]

A name is that of a file in `conformance/grpc/recorded/`, without `.txt`. Needs Java, Maven and network namespaces.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from conformance.grpc.conversations import CONVERSATIONS


def main(names: list[str]) -> None:
    for conversation in CONVERSATIONS:
        if names and conversation.name not in names:
            continue
        with tempfile.TemporaryDirectory(prefix="grpc-") as home:
            said = asyncio.run(conversation.with_the_official_proxy(Path(home)))
        conversation.file.parent.mkdir(exist_ok=True)
        conversation.file.write_text("\n".join(said) + "\n", encoding="utf-8")
        print(f"{conversation.name}: {len(said)} answers", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
