"""Typed reading of option texts. Every error names the option and says what is allowed. No network.

Spark passes options with lower-cased names. An unknown name is an error, so that a misspelled option does not silently
leave the default in place.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pocketmq.client.errors import InvalidSetting, ValidationFailed
from pocketmq.client.settings.client_settings import name_servers

from ...errors import OptionError
from .spelling import kafka_hint

NAMESRV: Final = "rocketmq.namesrv.addr"
_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_LARGEST: Final = (1 << 63) - 1


def plain_options(options: Mapping[str, Any]) -> dict[str, str]:
    """Spark's case-insensitive options as a plain dict of texts."""
    return {str(key): str(value) for key, value in options.items()}


def canonical_options(
    options: Mapping[str, str],
    names: tuple[str, ...],
    aliases: Mapping[str, str],
    of_kafka: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The options under their documented spelling. `OptionError` for an unknown name, or an alias beside its name.

    The error names what was meant: the counterpart in `of_kafka`, or a name that is spelled nearly so; else all names.
    """
    spelling = {name.lower(): name for name in names}
    spelling |= {alias.lower(): name for alias, name in aliases.items()}
    result: dict[str, str] = {}
    for key, value in options.items():
        name = spelling.get(key.lower())
        if name is None:
            meant = kafka_hint(key, of_kafka or {}, names) or f"; the options are {', '.join(names)}"
            raise OptionError(f"unknown option {key}", meant)
        if name in result:
            raise OptionError(f"option {key}", f": {name} is set twice")
        result[name] = value
    return result


def names_in(text: str | None) -> list[str]:
    """The names in a text with commas; none in None."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def check_name_servers(option: str, text: str) -> str:
    """`host:port;host:port` without blanks. `OptionError` names `option` if the text is anything else."""
    try:
        servers = name_servers(text, {})
    except InvalidSetting:
        servers = []
    if not servers:
        raise OptionError(option, f"must be host:port, or several separated by ;, got {text!r}")
    return ";".join(servers)


class OptionValues:
    """Reads texts as typed values. Every method raises `OptionError` for a text it cannot read."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def text(self, name: str) -> str | None:
        return self._texts.get(name)

    def required(self, name: str, example: str) -> str:
        value = self._texts.get(name, "").strip()
        if not value:
            raise OptionError(f"option {name}", f"is required, for example {example}")
        return value

    def name_servers(self) -> str:
        """The addresses of the name servers."""
        return check_name_servers(f"option {NAMESRV}", self.required(NAMESRV, "127.0.0.1:9876"))

    def resource_name(self, name: str, check: Callable[[str], None]) -> str | None:
        """The name of a topic or group; None if the option is missing or empty."""
        text = (self._texts.get(name) or "").strip()
        if not text:
            return None
        try:
            check(text)
        except ValidationFailed as error:
            raise OptionError(f"option {name}", f": {error}") from error
        return text

    def integer(self, name: str, default: int, *, least: int = 1, most: int = _LARGEST) -> int:
        value = self.optional_integer(name, least=least, most=most)
        return default if value is None else value

    def optional_integer(self, name: str, *, least: int = 1, most: int = _LARGEST) -> int | None:
        text = self._texts.get(name)
        if text is None:
            return None
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            allowed = f"{least} or more" if most == _LARGEST else f"from {least} to {most}"
            raise OptionError(f"option {name}", f"must be a whole number, {allowed}, got {text!r}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        text = self._texts.get(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise OptionError(f"option {name}", f"must be true or false, got {text!r}")
        return text.lower() == "true"

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        text = self._texts.get(name, default)
        for choice in choices:
            if text.lower() == choice.lower():
                return choice
        raise OptionError(f"option {name}", f"must be one of {', '.join(choices)}, got {text!r}")

    def duration_ms(self, name: str, default_ms: int) -> int:
        text = self._texts.get(name)
        if text is None:
            return default_ms
        matched = re.fullmatch(r"(\d+)\s*(ms|s|m|h)", text.strip())
        if matched is None:
            raise OptionError(
                f"option {name}", f"must be a number with ms, s, m or h, such as 15m, got {text!r}"
            )
        return int(matched[1]) * _UNITS_MS[matched[2]]
