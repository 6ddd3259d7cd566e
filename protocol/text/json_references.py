"""References in JSON: `{"$ref":"$.a[0]"}` stands for an object elsewhere in the same text.

fastjson writes one for an object that it has written before. Written out, each reference is a copy: a few hundred bytes
of references to references may stand for gigabytes. So the tree may have only so many values as its text has bytes, and
it must not contain itself.
"""

import re
from typing import Any, Final

from ..errors import BodyError

_STEP: Final = re.compile(r"\.((?:\\.|[^.\[\\])+)|\[([0-9]{1,9})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]", re.DOTALL)


_FREE_VALUES: Final = 10_000
"""Values of a tree whose text is short."""


def resolve_references(root: Any, text_bytes: int) -> Any:
    """Replace each `{"$ref": path}` by the object that the path from the root names, like `$.a[0].b`. Any other path
    gives None: `@` and `..` would make the tree contain itself. Raises BodyError for a tree that contains itself, is
    nested too deep, or has more values than its text (of `text_bytes`) may stand for."""
    try:
        tree = _resolve(root, root)
        values = _count(tree, {})
    except RecursionError as error:
        raise BodyError("JSON nested too deep") from error
    limit = _FREE_VALUES + text_bytes
    if values > limit:
        raise BodyError(f"JSON with references stands for {values} values; the limit is {limit}")
    return tree


def _resolve(value: Any, root: Any) -> Any:
    """Replaces in place."""
    if isinstance(value, list):
        items: Any = enumerate(value)
    elif isinstance(value, dict):
        if _is_reference(value):
            return _follow(value["$ref"], root)
        items = value.items()
    else:
        return value
    for key, member in list(items):
        if isinstance(member, list | dict):
            value[key] = _resolve(member, root)
    return value


def _count(value: Any, counts: dict[int, int]) -> int:
    """The values of a tree, those of an object once for each place that holds it. `counts` has one entry for each
    object: its values, 0 while they are counted."""
    if not isinstance(value, list | dict):
        return 1
    known = counts.get(id(value))
    if known == 0:
        raise BodyError("JSON that contains itself")
    if known is not None:
        return known
    counts[id(value)] = 0
    members = value.values() if isinstance(value, dict) else value
    total = 1
    for member in members:
        total += _count(member, counts)
    counts[id(value)] = total
    return total


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("$ref"), str)


def _follow(path: str, root: Any) -> Any:
    if not path.startswith("$"):
        return None
    target, position = root, 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return None
        position = step.end()
        target = _child(target, step)
    return None if _is_reference(target) else target


def _child(target: Any, step: re.Match[str]) -> Any:
    name, index = step[1] or step[3] or step[4], step[2]
    if index is not None:
        if isinstance(target, list):
            return target[int(index)] if int(index) < len(target) else None
        name = index
    if not isinstance(target, dict) or name is None:
        return None
    if "\\" in name:
        name = re.sub(r"\\(.)", r"\1", name)
    if name in target:
        return target[name]
    return target.get(int(name)) if name.isdecimal() and len(name) < 20 else None
