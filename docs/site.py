"""What mkdocs cannot do by itself: hooks of `make docs`.

Links that leave `docs/` lead to the repository. `[[pocketmq.client]]` on a page becomes the reference of every public
name of that package. A page that would load something from the network fails the build.
"""

import importlib
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = re.compile(r"\]\(\.\./([^)\s]+)\)")
PACKAGE = re.compile(r"^\[\[(pocketmq[\w.]*)\]\]$", re.MULTILINE)
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"?(?:https?:)?//|<link\b[^>]*\bhref=\"?(?:https?:)?//"
)
OWN_ADDRESS = re.compile(r"<link\b[^>]*\brel=\"?(?:canonical|edit)")


def on_page_markdown(markdown: str, *, config: Any, **_: object) -> str:
    return PACKAGE.sub(_reference, OUTSIDE.sub(rf"]({config.repo_url}/blob/main/\1)", markdown))


def _reference(found: re.Match[str]) -> str:
    """The names of a package, each where it is defined: the package itself loads them lazily."""
    package = importlib.import_module(found[1])
    return "\n".join(f"::: {found[1]}.{name}" for name in sorted(package.__all__, key=str.lower))


def on_post_build(*, config: Any, **_: object) -> None:
    pages = sorted(Path(config.site_dir).rglob("*.html"))
    loaded = [
        f"{page.name}: {tag[0]}"
        for page in pages
        for tag in LOADED.finditer(page.read_text(encoding="utf-8"))
        if not OWN_ADDRESS.match(tag[0])
    ]
    assert not loaded, f"loaded from the network: {loaded}"
