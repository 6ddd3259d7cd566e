"""The recorded conversations, by name and line: their rows, their settings, and which parts of answers are compared."""

from collections.abc import Callable, Iterator
from typing import Any

from conformance.access import access_rows
from conformance.requests import (
    administration_rows,
    group_rows,
    query_answers,
    query_rows,
    reading_rows,
    refused_rows,
    stored_rows,
)
from conformance.requests.assignments import Assignments
from conformance.requests.header_form_rows import HeaderForms
from conformance.requests.transcripts import LINES, Row, Transcript
from conformance.servers.remoting import Reply
from conformance.servers.server import Server

Rows = Callable[[], Iterator[Row]]


def with_plain_acl(server: Server) -> None:
    """Write the file of keys where both brokers look for it."""
    for folder in (server.home / "conf", server.store / "conf"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plain_acl.yml").write_text(access_rows.PLAIN_ACL, encoding="utf-8")


def _both(name: str, rows: Rows, shown: Callable[[Row, Reply], str], **options: Any) -> list[Transcript]:
    """The same conversation with a broker of each line."""
    return [Transcript(name, line, rows, shown, **options) for line in LINES]


def _refused(name: str, rows: Rows, closed: dict[str, object]) -> list[Transcript]:
    options = {"fell_over": refused_rows.FELL_OVER, "prepared": refused_rows.prepared}
    return _both(name, rows, refused_rows.shown, settings={**refused_rows.FILES, **closed}, **options)


def _administration(line: str, rows: Rows) -> Transcript:
    options = {"fell_over": administration_rows.FELL_OVER, "prepared": reading_rows.prepared}
    shown, settings = administration_rows.shown, administration_rows.OFF
    return Transcript("administration", line, rows, shown, settings=settings, **options)  # type: ignore[arg-type]


KEYS: dict[str, Any] = {"settings": {"aclEnable": True}, "before_start": with_plain_acl}
TRANSCRIPTS = [
    _administration("4.9", administration_rows.rows),
    _administration("5.5", administration_rows.rows_of_5),
    *_both("groups", group_rows.rows, group_rows.shown),
    *_both("queries", query_rows.rows, query_answers.shown, prepared=query_rows.prepared),
    *_refused("refused", refused_rows.rows, {}),
    *_refused("refused_closed", refused_rows.rows, refused_rows.CLOSED),
    *_refused("sizes", refused_rows.sizes, {}),
    *_refused("sizes_closed", refused_rows.sizes, refused_rows.CLOSED),
    *_both(
        "stored",
        stored_rows.rows,
        stored_rows.shown,
        prepared=stored_rows.prepared,
        fell_over=refused_rows.FELL_OVER,
    ),
    Transcript("keys", "4.9", access_rows.plain_acl_rows, access_rows.shown, **KEYS),
    Transcript("users", "5.5", access_rows.user_rows, access_rows.shown, settings=access_rows.AUTH_SETTINGS),
    Assignments("assignments", "5.5"),
    HeaderForms("header_forms", "4.9"),
    HeaderForms("header_forms", "5.5"),
    HeaderForms("header_forms_keys", "4.9", **KEYS),
]
