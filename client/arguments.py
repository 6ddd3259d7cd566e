"""A wrong argument of a public method is an `InvalidArgument` with its name, at the call, and no AttributeError inside.

    @checks_arguments                       each public method that the class itself has
    class PullConsumer(QueueReader): ...

    @checked                                one function
    def decode_traces(text: str) -> ...

The annotations are what is checked: types, the members of collections, the fields of structs, and that a `timeout_ms`
or `wait_ms` is a time. Sends, of which there may be many, check their arguments themselves. Keywords that are settings
are checked by those.
"""

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from .errors import InvalidArgument, InvalidSetting

LONGEST_TIMEOUT_MS: Final = 10**12
"""Also, a NaN among the timers of an event loop keeps others from being due."""
_TIMES: Final = {"timeout_ms": (int, float), "wait_ms": (int,)}
"""Parameters that are a time, and the kinds of number that they may be."""
_WORDS: Final = {
    str: "text",
    int: "a whole number",
    bool: "True or False",
    Mapping: "a dict",
    Iterable: "a list",
    Sequence: "a list",
    Callable: "a function",
}
P = ParamSpec("P")
R = TypeVar("R")
KindT = TypeVar("KindT", bound=type)


class Annotation(NamedTuple):
    """What a parameter or field may be."""

    kinds: tuple[type, ...]
    members: tuple[type, ...]
    """Classes of the members of a collection, of a mapping those of keys and values; empty if they may be anything."""


def annotation_of(hint: Any) -> Annotation | None:
    """None for a hint that is more than classes and their members: it is not checked."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = tuple(get_origin(part) or part for part in parts)
    if not all(map(_is_class, kinds)):
        return None
    members: tuple[Any, ...] = ()
    for part, kind in zip(parts, kinds, strict=True):
        inside = tuple(one for one in get_args(part) if one is not ...)
        if issubclass(kind, Iterable) and all(map(_is_class, inside)):
            members = members or inside
    return Annotation(kinds, members)


def _is_class(kind: object) -> bool:
    """Whether isinstance says something about it."""
    return isinstance(kind, type) and kind is not Any and not getattr(kind, "_is_protocol", False)


def is_of(value: object, kinds: tuple[type, ...]) -> bool:
    """Whether a value is of one of these classes; True and False are no numbers, and a text is no list of letters."""
    if isinstance(value, bool):
        return bool in kinds
    if isinstance(value, str | bytes):
        return any(issubclass(kind, str | bytes) and isinstance(value, kind) for kind in kinds)
    return isinstance(value, kinds)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, which raises `InvalidArgument`, or for a new client `InvalidSetting`, for a wrong argument."""
    check = _Check(function)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def checked_coroutine(*args: P.args, **kwargs: P.kwargs) -> Any:
            check(args, kwargs)
            return await function(*args, **kwargs)

        return checked_coroutine  # type: ignore[return-value]  # R is a coroutine

    @functools.wraps(function)
    def checked_function(*args: P.args, **kwargs: P.kwargs) -> R:
        check(args, kwargs)
        return function(*args, **kwargs)

    return checked_function


def checks_arguments(kind: KindT) -> KindT:
    """The same class, with each public method that it has itself, and `__init__`, checked."""
    for name, member in list(vars(kind).items()):
        if inspect.isfunction(member) and (name[0] != "_" or name == "__init__"):
            setattr(kind, name, checked(member))
    return kind


def no_keyword(what: str, name: str, known: Collection[str]) -> InvalidArgument:
    """The error for a keyword that does not exist, to be raised."""
    from difflib import get_close_matches  # only needed after a mistake

    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return InvalidArgument(f"{what} has no keyword {name}: {hint}")


class _Check:
    """The parameters of one function, read when it is first called."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._is_new = function.__name__ == "__init__"
        self._names: tuple[str, ...] = ()
        self._annotations: dict[str, Annotation] = {}

    def __call__(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        if not self._names:
            self._read()
        for name, value in (*zip(self._names, args, strict=False), *kwargs.items()):
            annotation = self._annotations.get(name)
            if annotation is not None and (wrong := _what_is_wrong(name, value, annotation)):
                raise (InvalidSetting if self._is_new else InvalidArgument)(wrong)
        if not self._is_new and (unknown := next((name for name in kwargs if name not in self._names), None)):
            raise no_keyword(self._function.__name__, unknown, self._names[1:])

    def _read(self) -> None:
        """With the keywords of an `Unpack`, if they are no settings."""
        names, self._annotations = (
            [*inspect.signature(self._function).parameters],
            _annotations_of(self._function),
        )
        unpacked = get_type_hints(self._function).get(names[-1])
        if get_origin(unpacked) is Unpack and not self._is_new:
            (keywords,) = get_args(unpacked)
            names = [*names[:-1], *get_type_hints(keywords)]
            self._annotations = self._annotations | _annotations_of(keywords)
        self._names = tuple(names)


@functools.cache
def _annotations_of(what: Any) -> dict[str, Annotation]:
    """Of a function's parameters, or of the fields of a struct."""
    found = {name: annotation_of(hint) for name, hint in get_type_hints(what).items()}
    return {name: one for name, one in found.items() if one is not None}


def _what_is_wrong(name: str, value: object, annotation: Annotation) -> str | None:
    if is_of(value, _TIMES.get(name, ())):
        is_time = 0 <= value < LONGEST_TIMEOUT_MS  # type: ignore[operator]
        return None if is_time else f"{name} must be milliseconds, 0 to 10^12, got {value!r}"
    if not is_of(value, annotation.kinds):
        kinds = (kind for kind in annotation.kinds if kind is not NoneType)
        wanted = " or ".join(dict.fromkeys(_WORDS.get(kind, kind.__name__) for kind in kinds))
        return f"{name} must be {wanted}, not {type(value).__name__}"
    if isinstance(value, msgspec.Struct):
        return _wrong_field(name, value)
    if annotation.members and isinstance(value, Mapping | Collection) and not isinstance(value, str):
        parts = zip(*value.items(), strict=True) if isinstance(value, Mapping) else (value,)
        for part, member in zip(parts, annotation.members, strict=False):
            for one in part:
                if wrong := _what_is_wrong(f"a member of {name}", one, Annotation((member,), ())):
                    return wrong
    return None


def _wrong_field(name: str, value: msgspec.Struct) -> str | None:
    """Of a struct that was made by hand, which may hold anything; one with a `__post_init__` has checked itself."""
    if hasattr(value, "__post_init__"):
        return None
    for field, annotation in _annotations_of(type(value)).items():
        if field[0] != "_" and (
            wrong := _what_is_wrong(f"{name}.{field}", getattr(value, field), annotation)
        ):
            return wrong
    return None
