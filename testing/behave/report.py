"""A report: what one client did in some scenarios. Written as JSON, read again to compare clients."""

from pathlib import Path

import msgspec

from .measures import Measures


class ReportError(Exception):
    """A report that cannot be read or written; the text is one line."""


class Played(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One scenario with its figures."""

    about: str
    role: str
    measures: Measures


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client did; scenarios in the order they were asked for."""

    client: str
    command: list[str]
    scenarios: dict[str, Played]

    def trouble(self) -> list[str]:
        """What a program should not do: one sentence each."""
        found = []
        for name, played in self.scenarios.items():
            measures = played.measures
            if measures.lost:
                ids = "; ".join(measures.lost_messages)
                found.append(f"{name}: {measures.lost} messages were lost{f': {ids}' if ids else ''}")
            found += [f"{name}: not reached: {text}" for text in measures.not_reached]
            if measures.killed:
                found.append(f"{name}: the program did not end after SIGTERM")
        return found


def write_report(path: Path, report: Report) -> None:
    """Raises `ReportError`."""
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror or error}") from error


def read_report(path: Path) -> Report:
    """Raises `ReportError`."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except OSError as error:
        raise ReportError(f"cannot read {path}: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise ReportError(f"{path} is no report of pocketmq behave: {error}") from error
