"""The rows of a report's table, for the tests of jobs."""

from typing import Any


def rows(report: Any, name: str) -> list[dict[str, Any]]:
    (section,) = [each for each in report.sections if each.name == name]
    found: list[dict[str, Any]] = section.frame.rows()
    return found
