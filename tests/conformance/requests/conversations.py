"""The recorded conversations, by name and line: their rows, their settings, and which parts of answers are compared."""

from collections.abc import Callable, Iterator

from conformance.access import access_rows
from conformance.requests import (
    administration_rows,
    group_rows,
    query_answers,
    query_rows,
    reading_rows,
    refused_rows,
)
from conformance.requests.transcripts import LINES, Row, Transcript
from conformance.servers.server import Server


def with_plain_acl(server: Server) -> None:
    """Write the file of keys where both brokers look for it."""
    for folder in (server.home / "conf", server.store / "conf"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plain_acl.yml").write_text(access_rows.PLAIN_ACL, encoding="utf-8")


def _refused(
    line: str, name: str, rows: Callable[[], Iterator[Row]], closed: dict[str, object]
) -> Transcript:
    return Transcript(
        name,
        line,
        rows,
        refused_rows.shown,
        fell_over=refused_rows.FELL_OVER,
        settings={**refused_rows.FILES, **closed},
        prepared=refused_rows.prepared,
    )


TRANSCRIPTS = [
    *(
        Transcript(
            "administration",
            line,
            rows,
            administration_rows.shown,
            fell_over=administration_rows.FELL_OVER,
            settings=administration_rows.OFF,
            prepared=reading_rows.prepared,
        )
        for line, rows in zip(LINES, (administration_rows.rows, administration_rows.rows_of_5), strict=True)
    ),
    *(Transcript("groups", line, group_rows.rows, group_rows.shown) for line in LINES),
    *(
        Transcript("queries", line, query_rows.rows, query_answers.shown, prepared=query_rows.prepared)
        for line in LINES
    ),
    *(_refused(line, "refused", refused_rows.rows, {}) for line in LINES),
    *(_refused(line, "refused_closed", refused_rows.rows, refused_rows.CLOSED) for line in LINES),
    *(_refused(line, "sizes", refused_rows.sizes, {}) for line in LINES),
    *(_refused(line, "sizes_closed", refused_rows.sizes, refused_rows.CLOSED) for line in LINES),
    Transcript(
        "keys",
        "4.9",
        access_rows.plain_acl_rows,
        access_rows.shown,
        settings={"aclEnable": True},
        before_start=with_plain_acl,
    ),
    Transcript("users", "5.5", access_rows.user_rows, access_rows.shown, settings=access_rows.AUTH_SETTINGS),
]
