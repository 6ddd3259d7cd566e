"""What a measurement must stay below (`thresholds.toml`): a program that is above one says so and ends with 1."""

import tomllib
from pathlib import Path

FILE = Path(__file__).with_name("thresholds.toml")


def check(program: str, measured_ms: dict[str, float]) -> None:
    """Raises SystemExit with a line for each figure above its limit; a figure without a limit is only a figure."""
    limits = tomllib.loads(FILE.read_text("utf-8"))[program]
    above = [
        f"{name}: {measured_ms[name]:.1f} ms, the limit is {limit} ms"
        for name, limit in limits.items()
        if measured_ms.get(name, 0) > limit
    ]
    if above:
        raise SystemExit("\n".join(above))
