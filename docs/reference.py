"""Writes the tables of docs/http.md, behind its mark: `python docs/reference.py`.

They name every address of the HTTP port, its parameters, and every member of its objects. The sources are what the
program itself reads: the operations and structs of `console/`, and the operations of the stand-in.
"""

import ast
import inspect
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
from pocketmq.console import openapi, values
from pocketmq.console.answers import JSON, OPERATIONS, Operation
from pocketmq.testing.server import stand_in_views  # noqa: F401  its views fill OPERATIONS

ROOT: Final = Path(__file__).resolve().parents[1]
HTTP_PAGE: Final = ROOT / "docs" / "http.md"
MARK: Final = "<!-- from here on written by docs/reference.py -->\n"
HTTP_HEAD: Final = """
## Every address

Parameters and bodies with other names are refused. `GET /` is the page.

"""
HTTP_PARAMETERS: Final = """
### Parameters

"""
HTTP_OBJECTS: Final = """
## Objects

What the port reads and answers, as JSON; times are in ms since 1970. Of what is read, a member with a default may be
left out; of what is answered, one that is marked so is there only where it says something.
"""


def http_text() -> str:
    """What the page must be."""
    structs = list(_structs())
    parts = [HTTP_PAGE.read_text(encoding="utf-8").partition(MARK)[0], MARK, HTTP_HEAD]
    operations = sorted(OPERATIONS, key=lambda one: (one.path.startswith("/api"), one.path))
    parts += _table("address", "parameters", "body", "answer", "")
    parts += [_row(*_address_cells(one)) for one in operations]
    parts += [HTTP_PARAMETERS, *_table("parameter", "type", "meaning")]
    parts += [_row(f"`{name}`", *cells) for name, cells in openapi.PARAMETERS.items()]
    parts.append(HTTP_OBJECTS)
    _, schemas = msgspec.json.schema_components(structs, ref_template="{name}")
    for kind in structs:
        text = " ".join((inspect.getdoc(kind) or "").split())
        schema, docs, base = schemas[kind.__name__], _field_docs(kind), kind.__base__
        inherited: tuple[str, ...] = getattr(base, "__struct_fields__", ())
        if inherited and base is not None:
            text += f" It has the members of {_kind_text(base)}, and these:"
        parts += [f"\n### {kind.__name__}\n\n{text}\n\n", *_table("member", "type", "meaning")]
        for name, member in schema["properties"].items():
            if name in inherited:
                continue
            is_left_out = name not in schema["required"] if "required" in schema else True
            mark = f"; default {_json(member['default'])}" if "default" in member else "; may be missing"
            parts.append(_row(f"`{name}`", _type_text(member) + mark * is_left_out, docs.get(name, "")))
    return "".join(parts)


def _address_cells(operation: Operation) -> Iterator[str]:
    yield f"`{operation.method} {operation.path}`"
    yield ", ".join(f"`{name}`" for name in operation.query)
    yield _kinds_text(operation.body) if operation.accepts == JSON else "bytes"
    if operation.content == JSON:
        yield _kinds_text(operation.answer) or "`{}`"
    else:
        yield {"text/plain": "text", "text/event-stream": "events"}.get(operation.content, "bytes")
    yield " ".join((inspect.getdoc(operation.answering) or "").split())


def _kinds_text(kinds: Any) -> str:
    return " or ".join(_kind_text(kind) for kind in openapi.each_kind(kinds))


def _kind_text(kind: Any) -> str:
    inner = next(iter(getattr(kind, "__args__", ())), None)
    if inner is not None and msgspec.inspect.is_struct_type(inner):
        return f"list of {_kind_text(inner)}"
    if not msgspec.inspect.is_struct_type(kind):
        return "object"
    return f"[{kind.__name__}](#{kind.__name__.lower()})"


def _structs() -> Iterable[type[msgspec.Struct]]:
    """In the order of their source."""
    return (
        kind
        for kind in vars(values).values()
        if msgspec.inspect.is_struct_type(kind) and kind.__module__ == values.__name__
    )


def _type_text(schema: dict[str, Any]) -> str:
    """A JSON schema in words."""
    if "$ref" in schema:
        return f"[{schema['$ref']}](#{schema['$ref'].lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type_text(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(str(one) for one in schema["enum"])
    kind: str = schema["type"]
    if kind == "array":
        return f"list of {_type_text(schema['items'])}"
    if kind == "object":
        return f"object of {_type_text(schema['additionalProperties'])}"
    if "maximum" in schema:
        return f"{kind}, {schema['minimum']} to {schema['maximum']}"
    return f"{kind}, {schema['minimum']} or more" if "minimum" in schema else kind


def _json(value: object) -> str:
    return f"`{msgspec.json.encode(value).decode()}`"


def _field_docs(kind: type[msgspec.Struct]) -> dict[str, str]:
    """The docstrings behind its own fields."""
    (node,) = ast.parse(inspect.getsource(kind)).body
    return {
        ast.unparse(field.target): " ".join(str(following.value.value).split())
        for field, following in pairwise(getattr(node, "body", ()))
        if isinstance(field, ast.AnnAssign)
        and isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Constant)
    }


def _table(*heads: str) -> list[str]:
    return [_row(*heads), _row(*("---" for _ in heads)).replace(" ", "")]


def _row(*cells: str) -> str:
    return (
        "|"
        + "".join(f" {cell} |" if cell else " |" for cell in (cell.replace("|", "\\|") for cell in cells))
        + "\n"
    )


def main() -> None:
    """Write the page."""
    HTTP_PAGE.write_text(http_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
