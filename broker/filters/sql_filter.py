"""SQL92 filters at work: an expression compiled once, and asked about each message a pull or a pop walks over.

The filter looks at the properties of a stored record, never at its body; a message without the properties, or for
which the expression has no value, does not match. Compiled expressions, and refusals, are remembered. Mirrors
`SqlFilter` and the SQL half of `ExpressionMessageFilter`. Grammar: `sql_grammar.py`; which group filters by what:
`consumer_filters.py`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pocketmq.protocol.bodies.client import SQL92
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.message.record import properties_of

from .sql_numbers import EvaluationError

if TYPE_CHECKING:
    from .sql_operands import Operand

MAX_EXPRESSION: Final = 32 * 1024
"""Characters. Reading one so long takes some 30 ms of the loop; officially the size of a frame is the limit."""

_REFUSED: Final = "Invalid SQL92 expression"
"""Officially the words of its parser's own exceptions, `ParseException: Encountered "<EOF>" at ...`, follow here."""
_LONGEST_REASON: Final = 200


class ExpressionRefused(Exception):
    """The text is what a 46 is refused with."""


class SqlFilter:
    """One compiled expression. Holds no state of a message."""

    __slots__ = ("_evaluate",)

    def __init__(self, operand: "Operand") -> None:
        self._evaluate = operand.evaluate

    def matches_record(self, record: memoryview) -> bool:
        """Whether a stored message matches."""
        return self._matches(_property_text(record))

    def matches_properties(self, properties: Mapping[str, str]) -> bool:
        """Whether a message just stored matches."""
        return self._matches("\x02" + encode_properties_text(properties))

    def _matches(self, properties: str) -> bool:
        try:
            return self._evaluate(properties) is True
        except EvaluationError:
            return False


def compile_expression(expression: str | None, expression_type: str | None, emulate: int) -> SqlFilter:
    """The filter for a subscription of another type than TAG. Raises `ExpressionRefused`."""
    if expression_type != SQL92:
        # What Java says about the missing parser; clients print it.
        raise ExpressionRefused(
            'Cannot invoke "org.apache.rocketmq.filter.FilterSpi.compile(String)" because the return value of '
            '"org.apache.rocketmq.filter.FilterFactory.get(String)" is null'
        )
    if not expression or len(expression) > MAX_EXPRESSION:
        raise ExpressionRefused(f"{_REFUSED}: it is empty, or longer than {MAX_EXPRESSION} characters")
    result = _remembered(expression, emulate)
    if isinstance(result, str):
        raise ExpressionRefused(result)
    return result


@lru_cache(maxsize=256)
def _remembered(expression: str, emulate: int) -> SqlFilter | str:
    from .sql_grammar import read_expression  # the parser's library is not worth loading without SQL
    from .sql_operands import SqlError

    try:
        return SqlFilter(read_expression(expression, emulate))
    except SqlError as error:
        return f"{_REFUSED}: {str(error).strip().splitlines()[0][:_LONGEST_REASON]}"


def _property_text(record: memoryview) -> str:
    """The properties of a stored message between two separators, as `sql_operands.py` wants them."""
    text = str(properties_of(record), "utf-8", "replace")
    return f"\x02{text}\x02"
