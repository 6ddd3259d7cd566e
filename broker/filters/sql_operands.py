"""The compiled parts of an SQL92 expression: which operands an operator accepts, and its value for a message.

Each part is an `Operand` with a Python function from a message's properties to a value. As in Java there are three
truth values; `None` is "unknown", the value of an absent property. Property values are text. Compared with a number,
text is read as a number; if that fails, the whole expression fails for this message (`EvaluationError`), which then
does not match. So `a = 5 OR b = 1` does not match a="x", b="1".

    left         right      compared as                          text that is not a number
    text         int        Integer.valueOf (32 bits)            error
    text         long       Long.valueOf, literals beyond int    error
    text         decimal    Double.valueOf                       error
    text = text             text                                 -
    text < text             both as Double                       error
    truth        text       error; text = truth reads the text

Mirrors the `expression` package of the official filter module, with its oddities.
"""

import operator
import re
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Any, Final

import msgspec

Properties = str
"""A message's property text between two separators: `\\x02name\\x01value\\x02...\\x02`."""
Evaluate = Callable[[Properties], Any]

MAX_DEPTH: Final = 256
"""Nested operators. Java overflows its stack at some thousands; our functions nest as deep as the expression."""


class SqlError(Exception):
    """An expression that cannot be compiled."""


class EvaluationError(Exception):
    """The expression has no value for this message; the message does not match."""


# -- numbers as Java reads them from text: Python's own readers accept more (`1_000`, blanks, `inf`) and less (`1d`)

INT_LIMIT: Final = 1 << 31
LONG_LIMIT: Final = 1 << 63
_LONGEST: Final = 4000
"""Python reads this many digits without an error; all but 19 of them must be zeros."""
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?", re.ASCII)
_HEXADECIMAL: Final = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?", re.ASCII
)
_BLANKS: Final = "".join(map(chr, range(0x21)))
_SPECIAL: Final = {"Infinity": float("inf"), "NaN": float("inf")}
"""NaN sorts after all numbers. `_as_doubles` tells it apart from infinity; no literal is infinite."""


def _whole(limit: int, text: str) -> int:
    """Java's `Integer.valueOf` or `Long.valueOf`."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if digits.isdecimal() and len(digits) <= _LONGEST:
        value = int(text)
        if -limit <= value < limit:
            return value
    raise EvaluationError(f"{text[:40]!r} is not a whole number of its size")


def read_double(text: str) -> float:
    """Java's `Double.valueOf`. Raises `EvaluationError`."""
    text = text.strip(_BLANKS)
    if _DECIMAL.fullmatch(text):
        return float(text.rstrip("fFdD"))
    if _HEXADECIMAL.fullmatch(text):
        return _hexadecimal(text)
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    special = _SPECIAL.get(unsigned)
    if special is None:
        raise EvaluationError(f"{text[:40]!r} is not a number")
    return -special if text == "-Infinity" else special


def _hexadecimal(text: str) -> float:
    exponent = text.lower().index("p")
    try:
        return float.fromhex(text[:exponent] + text[exponent:].rstrip("fFdD"))
    except OverflowError:
        return float("-inf" if text[0] == "-" else "inf")


class Kind(Enum):
    PROPERTY = auto()
    TEXT = auto()
    INT = auto()
    LONG = auto()
    DOUBLE = auto()
    TRUTH = auto()
    NOTHING = auto()
    """The negative of something that is not a number: always None, and not a truth value."""


_NUMBERS: Final = (Kind.INT, Kind.LONG, Kind.DOUBLE)
_READERS: Final[dict[Kind, Callable[[str], Any]]] = {
    Kind.INT: partial(_whole, INT_LIMIT),
    Kind.LONG: partial(_whole, LONG_LIMIT),
    Kind.DOUBLE: read_double,
}
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class Operand(msgspec.Struct, eq=False):
    """One compiled part. `terms` are the terms of an AND or OR chain, in one list: a long chain is not nested."""

    kind: Kind
    evaluate: Evaluate
    depth: int = 1
    is_literal: bool = False
    value: Any = None
    chain: str = ""
    terms: list[Evaluate] | None = None

    def __post_init__(self) -> None:
        if self.depth > MAX_DEPTH:
            raise SqlError(f"more than {MAX_DEPTH} nested operators")


# -- leaves


def literal(kind: Kind, value: Any) -> Operand:
    return Operand(kind, lambda _: value, is_literal=True, value=value)


def read_property(name: str) -> Operand:
    """A user or system property; None if the message does not have it."""
    key = f"\x02{name}\x01"
    key_length = len(key)

    def value(properties: Properties) -> str | None:
        # The last of equal names counts; a pair without a value does not.
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
    """The operand as a truth value: a property alone is text and never true; other values are refused."""
    if operand.kind is Kind.TRUTH:
        return operand
    if operand.kind is not Kind.PROPERTY:
        raise SqlError("the expression must be true or false, this part is neither")
    evaluate = operand.evaluate
    return _truth(lambda properties: None if evaluate(properties) is None else False, operand)


def _truth(evaluate: Evaluate, *parts: Operand) -> Operand:
    return Operand(Kind.TRUTH, evaluate, depth=1 + max(part.depth for part in parts))


def either(left: Operand, right: Operand) -> Operand:
    return _chain_operands("OR", truth(left), truth(right), decided_by=True)


def both(left: Operand, right: Operand) -> Operand:
    return _chain_operands("AND", truth(left), truth(right), decided_by=False)


def _chain_operands(chain: str, left: Operand, right: Operand, *, decided_by: bool) -> Operand:
    """`a AND b AND c` as one loop over its terms, from the left, until one decides."""
    if left.chain == chain and left.terms is not None:
        left.terms.append(right.evaluate)
        left.depth = max(left.depth, right.depth + 1)
        if left.depth > MAX_DEPTH:
            raise SqlError(f"more than {MAX_DEPTH} nested operators")
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
    """The negative of a number; nothing for any other operand, also for text."""
    if operand.kind in _NUMBERS:
        value = -operand.value
        return Operand(operand.kind, lambda _: value, depth=operand.depth + 1, value=value)
    evaluate = operand.evaluate

    def nothing(properties: Properties) -> None:
        evaluate(properties)  # it may raise

    return Operand(Kind.NOTHING, nothing, depth=operand.depth + 1)


# -- comparisons


def is_null(operand: Operand) -> Operand:
    evaluate = operand.evaluate
    return _truth(lambda properties: evaluate(properties) is None, operand)


def equal(left: Operand, right: Operand) -> Operand:
    """Two absent values are equal; if only the left is absent the result is unknown, if only the right, false."""
    for side in (left, right):
        if side.is_literal and side.value is None:
            raise SqlError("NULL cannot be compared, use IS NULL")
    if left.is_literal and right.is_literal and left.kind is Kind.TRUTH and right.kind is not Kind.TRUTH:
        raise SqlError("a truth value cannot be compared with this")
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


def compare(symbol: str, left: Operand, right: Operand) -> Operand:
    """`<`, `<=`, `>` or `>=`, for numbers and properties."""
    for side in (left, right):
        if side.kind is Kind.TRUTH or (side.is_literal and side.kind not in _NUMBERS):
            raise SqlError(f"{symbol} compares numbers and properties only")
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
    if first == second:  # Java orders -0.0 before 0.0, and Infinity before NaN
        return (str(first) == "0.0", "NaN" in left), (str(second) == "0.0", "NaN" in right)
    return first, second


def _comparable(left: Kind, right: Kind) -> Callable[[Any, Any], Pair | None]:
    """Two values as Java compares those classes; None if they are just different (`__compare` returns -1)."""
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
    raise EvaluationError("a truth value cannot be compared with text")


def between(value: Operand, low: Operand, high: Operand) -> Operand:
    if low.is_literal and high.is_literal and low.kind in _NUMBERS and high.kind in _NUMBERS:
        pair = _comparable(high.kind, low.kind)(high.value, low.value)
        if pair is not None and pair[0] < pair[1]:
            raise SqlError("the lower bound of BETWEEN must come first")
    return both(compare(">=", value, low), compare("<=", value, high))


def not_between(value: Operand, low: Operand, high: Operand) -> Operand:
    return either(compare("<", value, low), compare(">", value, high))


# -- text


_TEXT_TESTS: Final[dict[str, Callable[[str, str], bool]]] = {
    "CONTAINS": operator.contains,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}


def text_test(word: str, operand: Operand, wanted: str, *, negated: bool) -> Operand:
    """CONTAINS, STARTSWITH, ENDSWITH: false, negated or not, if the value is absent or no text, or `wanted` empty."""
    evaluate, test = operand.evaluate, _TEXT_TESTS[word]

    def tests(properties: Properties) -> bool:
        if not wanted:
            return False  # without a look at the value, which may have none
        value = evaluate(properties)
        return isinstance(value, str) and test(value, wanted) is not negated

    return _truth(tests, operand)


def one_of(operand: Operand, choices: list[str], *, negated: bool) -> Operand:
    if operand.kind is not Kind.PROPERTY:
        raise SqlError("the left side of IN must be a property")
    evaluate, chosen = operand.evaluate, frozenset(choices)

    def tests(properties: Properties) -> bool | None:
        value = evaluate(properties)
        return None if value is None else (value in chosen) is not negated

    return _truth(tests, operand)
