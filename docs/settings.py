"""Writes what is made of the settings' source: `python -m docs.settings`.

    client/settings/keywords.py     the settings as typed keyword arguments, with what an editor shows of each
    docs/python.md                  behind a mark: every setting with its default, type and meaning

The source is the structs of `client/settings/`, each field followed by its docstring.
"""

import ast
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from pocketmq.client.settings import checks, client_settings, consumer_settings, producer_settings

ROOT: Final = Path(__file__).resolve().parents[1]
SETTINGS: Final = ROOT / "client" / "settings"
KEYWORDS: Final = SETTINGS / "keywords.py"
PAGE: Final = ROOT / "docs" / "python.md"
MARK: Final = "<!-- from here on written by docs/settings.py -->\n"

CLASSES: Final = {
    "ClientSettings": ("client_settings.py", "ClientOptions", "All clients"),
    "ProducerSettings": ("producer_settings.py", "ProducerOptions", "Producers"),
    "ConsumerSettings": ("consumer_settings.py", "ConsumerOptions", "Push and lite pull consumers"),
    "PushConsumerSettings": ("consumer_settings.py", "PushConsumerOptions", "Push consumers"),
    "LitePullConsumerSettings": ("consumer_settings.py", "LitePullConsumerOptions", "Lite pull consumers"),
}
BASES: Final = {
    "ClientSettings": "TypedDict",
    "PushConsumerSettings": "ConsumerOptions",
    "LitePullConsumerSettings": "ConsumerOptions",
}
KEYWORDS_HEAD: Final = '''"""The settings as typed keyword arguments, such as `Producer("g", send_msg_timeout=1000)`.

Written by `docs/settings.py` from the structs beside this file. Nothing here exists at run time but names.
"""

import ssl
from typing import TypedDict

from pocketmq.protocol.bodies.client import ConsumeFromWhere, MessageModel

from .allocation import AllocateMessageQueueStrategy
from .client_settings import AccessChannel
'''
PAGE_HEAD: Final = """
Every setting of the official classes is a keyword argument of its client, with its snake_case name and its official
default: `Producer("orders", send_msg_timeout=1_000)`. [The Python client](client.md) says what the clients do with
them. Times are milliseconds and sizes bytes unless the text says otherwise; -1 is the official "not set".
"""


class Setting(NamedTuple):
    """One field of a struct, as its source has it."""

    name: str
    type: str
    default: str
    doc: str


def settings_of(struct: str) -> list[Setting]:
    """The fields of a struct, without those that it inherits unchanged."""
    source = (SETTINGS / CLASSES[struct][0]).read_text(encoding="utf-8")
    [body] = [
        node.body for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == struct
    ]
    found = []
    for field, following in pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and field.value is not None
        ):
            has_doc = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            doc = ast.get_source_segment(source, following) if has_doc else None
            assert doc is not None, f"{struct}.{field.target.id} has no docstring"
            default = ast.get_source_segment(source, field.value) or ""
            found.append(Setting(field.target.id, _type_of(field.annotation), default, doc.strip('"')))
    return found


def _type_of(annotation: ast.expr) -> str:
    """Without the range."""
    text = ast.unparse(annotation)
    return "int" if text.startswith(("AtLeast", "Annotated[int, ")) else text


def keywords_text() -> str:
    """What `keywords.py` must be."""
    parts = [KEYWORDS_HEAD]
    inherited = set[str]()
    for struct, (_, options, title) in CLASSES.items():
        base = BASES.get(struct, "ClientOptions")
        parts.append(f'\n\nclass {options}({base}, total=False):\n    """{title} take these."""\n\n')
        own = (setting for setting in settings_of(struct) if setting.name not in inherited)
        parts += [f'    {setting.name}: {setting.type}\n    """{setting.doc}"""\n' for setting in own]
        if struct == "ClientSettings":
            inherited = {setting.name for setting in settings_of(struct)}
    return "".join(parts)


def page_text() -> str:
    """What the page must be."""
    parts = [PAGE.read_text(encoding="utf-8").partition(MARK)[0], MARK, PAGE_HEAD]
    for struct, (_, _, title) in CLASSES.items():
        parts.append(
            f"\n### {title}\n\n`{struct}`\n\n| setting | type | default | meaning |\n|---|---|---|---|\n"
        )
        for name, kind, default, doc in settings_of(struct):
            cells = [f"`{name}`", f"`{kind}`", f"`{_shown(default)}`", " ".join(doc.split())]
            parts.append(" | ".join(["", *(cell.replace("|", "\\|") for cell in cells), ""]).strip() + "\n")
    return "".join(parts)


def _shown(default: str) -> str:
    """The default as a reader of the page understands it."""
    made = default.partition("default_factory=")[2].strip(" ()\n")
    if made:
        return "{}" if made == "dict" else f"{made}()"
    constants = vars(checks) | vars(producer_settings) | vars(client_settings) | vars(consumer_settings)
    value = eval(default, constants)  # the source of our own package
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, frozenset):
        return f"{{{', '.join(map(str, sorted(value)))}}}"
    return default.replace("* MIB", "MiB") if "MIB" in default else repr(value)


def main() -> None:
    """Write both files."""
    KEYWORDS.write_text(keywords_text(), encoding="utf-8")
    PAGE.write_text(page_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
