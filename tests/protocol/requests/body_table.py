"""Prints the table of bodies in WIRE.md, from the declarations of all requests.

cd tests; python -m protocol.requests.body_table
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pocketmq.protocol.bodies.body import form_name
from pocketmq.protocol.requests import names
from pocketmq.protocol.wire.schema import REQUESTS


def body_table() -> Iterator[str]:
    """The lines of the table: every request that has a body or a reply body, by its code."""
    assert names.DECLARED_IN, "importing the modules declares their requests"
    yield "| Code | Request | Line | Body | Body of the reply |"
    yield "|---|---|---|---|---|"
    for code, request in sorted(REQUESTS.items()):
        if request.body_form is None and request.reply_body_form is None:
            continue
        line = {None: "", 4: "4.9", 5: "5.x"}[request.only_in]
        body = _cell(request.body_form, request.body_variants)
        reply = _cell(request.reply_body_form, request.reply_body_variants)
        reply += ", or none" if request.may_lack_reply_body else ""
        yield f"| {code} | {request.__name__} | {line} | {body} | {reply} |"


def _cell(form: Any, variants: Mapping[str, Any]) -> str:
    if form is None:
        return ""
    return "; ".join([form_name(form), *(f"{when}: {form_name(other)}" for when, other in variants.items())])


if __name__ == "__main__":
    print(*body_table(), sep="\n")
