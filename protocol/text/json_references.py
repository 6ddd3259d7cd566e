"""References in JSON: `{"$ref":"$.a[0]"}` stands for an object elsewhere in the same text.

fastjson writes one for an object that it has written before. The resolved tree may contain itself.
"""

import re
from typing import Any, Final

_STEP: Final = re.compile(r"\.((?:\\.|[^.\[\\])+)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]", re.DOTALL)


def resolve_references(root: Any) -> Any:
    """Replace each `{"$ref": path}` by the object it names: `$` root, `@` the object itself, `..` its owner,
    `$.a[0].b` a path from the root. An unknown path gives None. The result may contain itself."""
    return _resolve(root, root, ())


def _resolve(value: Any, root: Any, owners: tuple[Any, ...]) -> Any:
    """Replaces in place. `owners` are the containers around `value`, outermost first."""
    if isinstance(value, list):
        items: Any = enumerate(value)
    elif isinstance(value, dict):
        if _is_reference(value):
            return _follow(value["$ref"], root, owners)
        items = value.items()
    else:
        return value
    inside = (*owners, value)
    for key, member in list(items):
        if isinstance(member, list | dict):
            value[key] = _resolve(member, root, inside)
    return value


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("$ref"), str)


def _follow(path: str, root: Any, owners: tuple[Any, ...]) -> Any:
    if path == "@":
        return owners[-1] if owners else None
    if path.startswith(".."):
        levels = path.count("..")
        return owners[-1 - levels] if levels < len(owners) else None
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
    name = re.sub(r"\\(.)", r"\1", name)
    if name in target:
        return target[name]
    return target.get(int(name)) if name.isdecimal() and len(name) < 20 else None
