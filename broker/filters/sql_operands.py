"""The parts of an SQL92 expression, compiled: what may stand where, and what it yields for a message.

Each part is an `Operand` with a Python function from a message's properties to a value. As in Java there are three
truth values; `None` is "unknown", and what an absent property yields. Property values are text: a number beside one
makes it a number, and where that fails the whole expression fails for this message (`EvaluationError`), which then
does not match. So `a = 5 OR b = 1` does not match a="x", b="1".

    left         right      compared as                          a number that text cannot be read as
    text         int        Integer.valueOf (32 bits)            error
    text         long       Long.valueOf, literals beyond int    error
    text         decimal    Double.valueOf                       error
    text = text             text                                 -
    text < text             both as Double                       error
    truth        text       error; text = truth reads the text

Mirrors the `expression` package of the official filter module, with its oddities. The grammar is in
`sql_grammar.py`; `sql_filter.py` holds both together.
"""

import operator
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final

from .sql_numbers import EvaluationError, read_double, read_int, read_long

Properties = str
"""A message's property text between two separators: `\\x02name\\x01value\\x02...\\x02`."""
Evaluate = Callable[[Properties], Any]

MAX_DEPTH: Final = 256
"""Operators around one another. Java overflows its stack some thousands deep; our functions nest as deep as this."""


class SqlError(Exception):
    """An expression that says nothing a broker can do."""


class Kind(Enum):
    PROPERTY = auto()
    TEXT = auto()
    INT = auto()
    LONG = auto()
    DOUBLE = auto()
    TRUTH = auto()
    NOTHING = auto()
    """Minus something that is no number: always None, and no truth value either."""


_NUMBERS: Final = (Kind.INT, Kind.LONG, Kind.DOUBLE)
_READERS: Final[dict[Kind, Callable[[str], Any]]] = {
    Kind.INT: read_int,
    Kind.LONG: read_long,
    Kind.DOUBLE: read_double,
}
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class Operand:
    """One compiled part. `terms` are those of an AND or OR chain, kept flat so that a long chain is not deep."""

    __slots__ = ("chain", "depth", "evaluate", "is_literal", "kind", "terms", "value")

    def __init__(
        self,
        kind: Kind,
        evaluate: Evaluate,
        *,
        depth: int = 1,
        is_literal: bool = False,
        value: Any = None,
        chain: str = "",
        terms: list[Evaluate] | None = None,
    ) -> None:
        if depth > MAX_DEPTH:
            raise SqlError(f"more than {MAX_DEPTH} operators around one another")
        self.kind = kind
        self.evaluate = evaluate
        self.depth = depth
        self.is_literal = is_literal
        self.value = value
        self.chain = chain
        self.terms = terms


# -- leaves


def literal(kind: Kind, value: Any) -> Operand:
    return Operand(kind, lambda _: value, is_literal=True, value=value)


def property_named(name: str) -> Operand:
    """A user or system property; None where the message has none of this name."""
    key = f"\x02{name}\x01"
    key_length = len(key)

    def value(properties: Properties) -> str | None:
        # The last of equal names wins, and a pair without value counts for nothing.
        found = properties.rfind(key)
        while found >= 0:
            start = found + key_length
            end = properties.find("\x02", start)
            if end > start:
                return properties[start:end]
            found = properties.rfind(key, 0, found + 1)
        return None

    return Operand(Kind.PROPERTY, value, value=name)


# -- truth


def truth(operand: Operand) -> Operand:
    """As a truth value: a property alone is text and so never true, other values are refused."""
    if operand.kind is Kind.TRUTH:
        return operand
    if operand.kind is not Kind.PROPERTY:
        raise SqlError("this is neither true nor false")
    evaluate = operand.evaluate
    return _truth(lambda properties: None if evaluate(properties) is None else False, operand)


def _truth(evaluate: Evaluate, *parts: Operand) -> Operand:
    return Operand(Kind.TRUTH, evaluate, depth=1 + max(part.depth for part in parts))


def either(left: Operand, right: Operand) -> Operand:
    return _chained("OR", truth(left), truth(right), decided_by=True)


def both(left: Operand, right: Operand) -> Operand:
    return _chained("AND", truth(left), truth(right), decided_by=False)


def _chained(chain: str, left: Operand, right: Operand, *, decided_by: bool) -> Operand:
    """`a AND b AND c` as one loop over its terms, from the left, up to the one that decides."""
    if left.chain == chain and left.terms is not None:
        left.terms.append(right.evaluate)
        left.depth = max(left.depth, right.depth + 1)
        if left.depth > MAX_DEPTH:
            raise SqlError(f"more than {MAX_DEPTH} operators around one another")
        return left
    terms = [left.evaluate, right.evaluate]

    def evaluate(properties: Properties) -> bool | None:
        is_known = True
        for term in terms:
            value = term(properties)
            if value == decided_by and value is not None:
                return decided_by
            if value is None:
                is_known = False
        return (not decided_by) if is_known else None

    depth = 1 + max(left.depth, right.depth)
    return Operand(Kind.TRUTH, evaluate, depth=depth, chain=chain, terms=terms)


def negation(operand: Operand) -> Operand:
    operand = truth(operand)
    evaluate = operand.evaluate

    def negated(properties: Properties) -> bool | None:
        value = evaluate(properties)
        return None if value is None else value is False

    return _truth(negated, operand)


def minus(operand: Operand) -> Operand:
    """The negative of a number; of anything else, text included, nothing."""
    if operand.kind in _NUMBERS:
        value = -operand.value
        return Operand(operand.kind, lambda _: value, depth=operand.depth + 1, value=value)
    evaluate = operand.evaluate

    def nothing(properties: Properties) -> None:
        evaluate(properties)  # which may fail

    return Operand(Kind.NOTHING, nothing, depth=operand.depth + 1)


# -- comparisons


def equal(left: Operand, right: Operand) -> Operand:
    for side in (left, right):
        if side.is_literal and side.value is None:
            raise SqlError("NULL cannot be compared, use IS NULL")
    if left.is_literal and right.is_literal and left.kind is Kind.TRUTH and right.kind is not Kind.TRUTH:
        raise SqlError("a truth value cannot be compared with this")
    return _equal(left, right)


def is_null(operand: Operand) -> Operand:
    evaluate = operand.evaluate
    return _truth(lambda properties: evaluate(properties) is None, operand)


def _equal(left: Operand, right: Operand) -> Operand:
    """Two absent values are equal; an absent left one makes it unknown, an absent right one false."""
    of_left, of_right = left.evaluate, right.evaluate
    if left.kind in (Kind.PROPERTY, Kind.TEXT) and right.kind is Kind.TEXT:
        text = right.value

        def equals_text(properties: Properties) -> bool | None:
            value = of_left(properties)
            return None if value is None else bool(value == text)

        return _truth(equals_text, left, right)
    compare = _comparable(left.kind, right.kind)

    def equals(properties: Properties) -> bool | None:
        value, other = of_left(properties), of_right(properties)
        if value is None:
            return True if other is None else None
        if other is None:
            return False
        pair = compare(value, other)
        return pair is not None and pair[0] == pair[1]

    return _truth(equals, left, right)


def ordered(symbol: str, left: Operand, right: Operand) -> Operand:
    """`<`, `<=`, `>` or `>=`, which numbers and properties have."""
    for side in (left, right):
        if side.kind is Kind.TRUTH or (side.is_literal and side.kind not in _NUMBERS):
            raise SqlError(f"this has no order and cannot be compared by {symbol}")
    holds = _ORDERS[symbol]
    of_left, of_right = left.evaluate, right.evaluate
    if left.kind is Kind.PROPERTY and right.kind in _NUMBERS:
        read, bound = _READERS[right.kind], right.value

        def against_number(properties: Properties) -> bool | None:
            value = of_left(properties)
            return None if value is None else holds(read(value), bound)

        return _truth(against_number, left, right)
    is_text_on_both = left.kind is Kind.PROPERTY and right.kind is Kind.PROPERTY
    compare = _as_doubles if is_text_on_both else _comparable(left.kind, right.kind)

    def compares(properties: Properties) -> bool | None:
        value, other = of_left(properties), of_right(properties)
        if value is None or other is None:
            return None
        pair = compare(value, other)
        return pair is not None and holds(*pair)

    return _truth(compares, left, right)


Pair = tuple[Any, Any]


def _as_doubles(left: str, right: str) -> Pair:
    first, second = read_double(left), read_double(right)
    if first == second == 0.0:  # Java orders -0.0 before 0.0
        return str(first) == "0.0", str(second) == "0.0"
    return first, second


def _comparable(left: Kind, right: Kind) -> Callable[[Any, Any], Pair | None]:
    """Two values as Java compares those classes; None where they are only different (`__compare` yields -1)."""
    left = Kind.TEXT if left is Kind.PROPERTY else left
    right = Kind.TEXT if right is Kind.PROPERTY else right
    if left is right:
        return lambda value, other: (value, other)
    if left in _NUMBERS and right in _NUMBERS:
        kind = float if Kind.DOUBLE in (left, right) else int
        return lambda value, other: (kind(value), kind(other))
    if left is Kind.TEXT and right in _READERS:
        read = _READERS[right]
        return lambda value, other: (read(value), other)
    if right is Kind.TEXT and left in _READERS:
        read = _READERS[left]
        return lambda value, other: (value, read(other))
    if left is Kind.TEXT and right is Kind.TRUTH:
        return lambda value, other: (value.lower() == "true", other)
    if left is Kind.TRUTH and right is Kind.TEXT:
        return _refuse
    return lambda value, other: None


def _refuse(value: Any, other: Any) -> None:
    raise EvaluationError("a truth value on the left of text")


def between(value: Operand, low: Operand, high: Operand) -> Operand:
    if low.is_literal and high.is_literal and low.kind in _NUMBERS and high.kind in _NUMBERS:
        pair = _comparable(high.kind, low.kind)(high.value, low.value)
        if pair is not None and pair[0] < pair[1]:
            raise SqlError("BETWEEN wants the lower bound first")
    return both(ordered(">=", value, low), ordered("<=", value, high))


def not_between(value: Operand, low: Operand, high: Operand) -> Operand:
    return either(ordered("<", value, low), ordered(">", value, high))


# -- text


_TEXT_TESTS: Final[dict[str, Callable[[str, str], bool]]] = {
    "CONTAINS": operator.contains,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}


def text_test(word: str, operand: Operand, wanted: str, *, negated: bool) -> Operand:
    """CONTAINS, STARTSWITH and ENDSWITH: false, negated or not, for what is absent or no text, and for ''."""
    evaluate, test = operand.evaluate, _TEXT_TESTS[word]

    def tests(properties: Properties) -> bool:
        value = evaluate(properties)
        return bool(wanted) and isinstance(value, str) and test(value, wanted) is not negated

    return _truth(tests, operand)


def one_of(operand: Operand, choices: list[str], *, negated: bool) -> Operand:
    if operand.kind is not Kind.PROPERTY:
        raise SqlError("IN wants a property on its left")
    evaluate, chosen = operand.evaluate, frozenset(choices)

    def tests(properties: Properties) -> bool | None:
        value = evaluate(properties)
        return None if value is None else (value in chosen) is not negated

    return _truth(tests, operand)
