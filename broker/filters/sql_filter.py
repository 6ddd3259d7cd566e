"""SQL92 filters: an expression is compiled once and then evaluated for each message that a pull or pop reads.

The filter looks at the properties of a stored record, never at its body. A message without those properties, or for
which the expression has no value, does not match. Compiled expressions and refusals are cached. Mirrors `SqlFilter` and
the SQL half of `ExpressionMessageFilter`.
"""

from typing import Final, NamedTuple

from pocketmq.protocol.bodies.client import SQL92
from pocketmq.protocol.message.record import properties_of

from ..bounded_cache import BoundedCache
from .sql_operands import EvaluationError, Operand, SqlError
from .tag_filter import TagsMatch

MAX_EXPRESSION: Final = 32 * 1024
"""Characters. Compiling an expression of this length takes 30 ms at most. The official limit is the size of a frame."""
CACHED_CHARACTERS: Final = 128 * 1024
"""Of all compiled expressions that are kept: about 200 bytes a character."""
_READING_CHARACTERS: Final = 80_000

_REFUSED: Final = "Invalid SQL92 expression"
"""The official broker appends the message of its parser: `ParseException: Encountered "<EOF>" at ...`."""
_LONGEST_REASON: Final = 200


class ExpressionRefused(Exception):
    """An expression that is refused; the text is the remark of the answer to 46."""


class SqlFilter:
    """One compiled expression. Keeps nothing of a message."""

    __slots__ = ("_evaluate", "bytes", "max_reads")

    def __init__(self, operand: Operand, expression: str) -> None:
        self._evaluate = operand.evaluate
        self.bytes = 200 * len(expression)
        self.max_reads = max(_READING_CHARACTERS // len(expression), 1)
        """Messages that one read of a queue may look at: a long expression takes long for each. 800 at 100 characters,
        as many as the official limit (`maxFilterMessageSize`)."""

    def matches_record(self, record: memoryview) -> bool:
        return self.matches_text(properties_of(record))

    def matches_text(self, text: bytes | memoryview) -> bool:
        """Whether a message with this property text matches."""
        try:
            return self._evaluate(f"\x02{str(text, 'utf-8', 'replace')}\x02") is True
        except EvaluationError:
            return False


class MessageFilter(NamedTuple):
    """What a pull or a pop asks for, by tag or by SQL92; every message without either."""

    tags: TagsMatch | None = None
    sql: SqlFilter | None = None

    def matches(self, tags_code: int, text: bytes) -> bool:
        """Whether a message that was just stored, with this property text, may match."""
        if self.tags is not None:
            return self.tags(tags_code)
        return self.sql is None or self.sql.matches_text(text)


EVERY_MESSAGE: Final = MessageFilter()


def by_tags(tags: TagsMatch | None) -> MessageFilter:
    """One object for all requests that want every message: each held one would be walked by the garbage collector."""
    return EVERY_MESSAGE if tags is None else MessageFilter(tags)


def compile_expression(expression: str | None, expression_type: str | None, *, is_5: bool) -> SqlFilter:
    """The filter for a subscription of another type than TAG. Raises `ExpressionRefused`."""
    if expression_type != SQL92:
        # Java's message about the missing parser; clients print it.
        raise ExpressionRefused(
            'Cannot invoke "org.apache.rocketmq.filter.FilterSpi.compile(String)" because the return value of '
            '"org.apache.rocketmq.filter.FilterFactory.get(String)" is null'
        )
    if not expression or len(expression) > MAX_EXPRESSION:
        raise ExpressionRefused(f"{_REFUSED}: must have 1 to {MAX_EXPRESSION} characters")
    result = _cache.get((expression, is_5))
    if result is None:
        result = _compile(expression, is_5=is_5)
        _cache.put((expression, is_5), result, len(expression))
    if isinstance(result, str):
        raise ExpressionRefused(result)
    return result


_cache: Final[BoundedCache[tuple[str, bool], SqlFilter | str]] = BoundedCache(CACHED_CHARACTERS)
"""Filters, and the remarks of refused expressions."""


def _compile(expression: str, *, is_5: bool) -> SqlFilter | str:
    from .sql_grammar import read_expression  # imports lark, which only SQL needs

    try:
        return SqlFilter(read_expression(expression, is_5=is_5), expression)
    except SqlError as error:
        return f"{_REFUSED}: {str(error).strip().splitlines()[0][:_LONGEST_REASON]}"
