"""WIRE.md agrees with the declarations in the code."""

from pathlib import Path

import pocketmq.protocol

from protocol.requests.body_table import body_table

DOCUMENT = Path(pocketmq.protocol.__path__[0]) / "WIRE.md"


def test_the_table_of_bodies_is_that_of_the_declarations() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    written = text.partition("<!-- bodies -->\n")[2].partition("\n<!-- /bodies -->")[0]
    assert written == "\n".join(body_table()), (
        "replace it by the output of: cd tests; python -m protocol.requests.body_table"
    )
