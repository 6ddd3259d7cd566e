"""Typed reading of option texts: each refusal names the option and says what it may be. No network.

Spark hands options over with lower-cased names. An unknown name is refused, so that a misspelled option does not pass
silently as a default.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pocketmq.client.errors import InvalidSetting, ValidationFailed
from pocketmq.client.settings.client_settings import name_servers

from ..errors import OptionError

NAMESRV: Final = "rocketmq.namesrv.addr"

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}


def canonical_options(
    options: Mapping[str, str], names: tuple[str, ...], aliases: Mapping[str, str]
) -> dict[str, str]:
    """The options under their proper spelling; `OptionError` for one there is not, or an alias beside its name."""
    spelled = {name.lower(): name for name in names} | {
        alias.lower(): name for alias, name in aliases.items()
    }
    made: dict[str, str] = {}
    for key, value in options.items():
        name = spelled.get(key.lower())
        if name is None:
            raise OptionError(f"option {key}: there is none; the options are {', '.join(names)}")
        if name in made:
            raise OptionError(f"option {key}: {name} is given twice")
        made[name] = value
    return made


class OptionValues:
    """Typed reading of texts; each refusal names the option and what it may be."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def text(self, name: str) -> str | None:
        return self._texts.get(name)

    def required(self, name: str, example: str) -> str:
        value = self._texts.get(name, "").strip()
        if not value:
            raise OptionError(f"option {name}: is required, for example {example}")
        return value

    def addresses(self) -> str:
        """The name servers. `OptionError` for what is no `host:port;host:port`."""
        text = self.required(NAMESRV, "127.0.0.1:9876")
        try:
            servers = name_servers(text, {})
        except InvalidSetting:
            servers = []
        if not servers:
            raise OptionError(f"option {NAMESRV}: host:port, or several with ; between them, not {text!r}")
        return ";".join(servers)

    def name(self, name: str, check: Callable[[str], None]) -> str | None:
        """The name of a topic or group; None where the option is not given or empty."""
        text = (self._texts.get(name) or "").strip()
        if not text:
            return None
        try:
            check(text)
        except ValidationFailed as error:
            raise OptionError(f"option {name}: {error}") from error
        return text

    def whole(self, name: str, default: int, *, least: int = 1, most: int = (1 << 63) - 1) -> int:
        value = self.maybe(name, least=least, most=most)
        return default if value is None else value

    def maybe(self, name: str, *, least: int = 1, most: int = (1 << 63) - 1) -> int | None:
        text = self._texts.get(name)
        if text is None:
            return None
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            limit = f" to {most}" if most < (1 << 63) - 1 else " or more"
            raise OptionError(f"option {name}: a whole number, {least}{limit}, not {text!r}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        text = self._texts.get(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise OptionError(f"option {name}: true or false, not {text!r}")
        return text.lower() == "true"

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        text = self._texts.get(name, default)
        for one in choices:
            if text.lower() == one.lower():
                return one
        raise OptionError(f"option {name}: one of {', '.join(choices)}, not {text!r}")

    def duration_ms(self, name: str, default_ms: int) -> int:
        text = self._texts.get(name)
        if text is None:
            return default_ms
        matched = re.fullmatch(r"(\d+)\s*(ms|s|m|h)", text.strip())
        if matched is None:
            raise OptionError(f"option {name}: a number with ms, s, m or h, such as 15m, not {text!r}")
        return int(matched[1]) * _UNITS_MS[matched[2]]


def plain_options(options: Mapping[str, Any]) -> dict[str, str]:
    """Spark's case-insensitive options as a plain dict of texts."""
    return {str(key): str(value) for key, value in options.items()}
