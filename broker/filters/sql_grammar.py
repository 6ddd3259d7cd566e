"""The grammar of SQL92 expressions, read by the library lark into the operands of `sql_operands.py`.

    a > 5 AND (b = 'x' OR c IS NOT NULL)        TAGS IN ('A', 'B')        n BETWEEN 1 AND 9        s CONTAINS 'x'

Binding, tightest first: unary + - NOT; < <= > >= BETWEEN IN CONTAINS STARTSWITH ENDSWITH; = <> IS NULL; AND; OR.
So `NOT a = b` is `(NOT a) = b`. There is no LIKE and no `!=`. Like the official parser, this one stops after a whole
expression and ignores the rest: `a = 1 b = 2` is `a = 1`. In text, a doubled quote is one quote, and a backslash has no
meaning.

Mirrors the official `SelectorParser`. Importing this file imports lark, which takes about 20 ms: `sql_filter.py` does
so for the first expression.
"""

import functools
from typing import Any, Final

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import LarkError, UnexpectedToken, VisitError

from . import sql_operands as operands
from .sql_operands import Kind, Operand, SqlError

GRAMMAR: Final = r"""
?start: disjunction
?disjunction: conjunction | disjunction _OR conjunction -> either
?conjunction: equality | conjunction _AND equality -> both
?equality: comparison
    | equality "=" comparison -> equal
    | equality "<>" comparison -> unequal
    | equality _IS _NULL -> is_null
    | equality _IS _NOT _NULL -> is_not_null
?comparison: unary
    | comparison ORDER unary -> ordered
    | comparison TEXT_TEST TEXT -> text_test
    | comparison _NOT TEXT_TEST TEXT -> not_text_test
    | comparison _BETWEEN unary _AND unary -> between
    | comparison _NOT _BETWEEN unary _AND unary -> not_between
    | comparison _IN "(" TEXT ("," TEXT)* ")" -> one_of
    | comparison _NOT _IN "(" TEXT ("," TEXT)* ")" -> none_of
?unary: "+" unary
    | "-" unary -> minus
    | _NOT unary -> negation
    | primary
?primary: "(" disjunction ")"
    | TEXT -> text
    | DECIMAL -> decimal
    | WHOLE -> whole
    | _TRUE -> true
    | _FALSE -> false
    | _NULL -> null
    | NAME -> name

ORDER.2: ">=" | ">" | "<=" | /<(?!>)/
_NOT.3: /(?ai:NOT)(?![A-Za-z0-9_$])/
_AND.3: /(?ai:AND)(?![A-Za-z0-9_$])/
_OR.3: /(?ai:OR)(?![A-Za-z0-9_$])/
_BETWEEN.3: /(?ai:BETWEEN)(?![A-Za-z0-9_$])/
_IN.3: /(?ai:IN)(?![A-Za-z0-9_$])/
_IS.3: /(?ai:IS)(?![A-Za-z0-9_$])/
_TRUE.3: /(?ai:TRUE)(?![A-Za-z0-9_$])/
_FALSE.3: /(?ai:FALSE)(?![A-Za-z0-9_$])/
_NULL.3: /(?ai:NULL)(?![A-Za-z0-9_$])/
TEXT_TEST.3: /(?ai:CONTAINS|STARTSWITH|ENDSWITH)(?![A-Za-z0-9_$])/
TEXT.2: /'(?:''|[^'])*'/
DECIMAL.3: /(?a:[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)/
WHOLE.2: /0|[1-9][0-9]*[lL]?/
NAME: /[A-Za-z_$][A-Za-z0-9_$]*/
%ignore /[ \t\n\r\f]+/
%ignore /--[^\n\r]*+[\n\r]/
%ignore /\/\*[^*]*\*(?:\*|[^*\/][^*]*\*)*\//
"""

MAX_TOKENS: Final = 3000
"""Of one expression: 750 comparisons. To compile as many takes about 30 ms."""
MAX_OPEN: Final = 256
"""Parts begun and not ended, such as parentheses and signs. A line comment is looked for at each of two hyphens."""
_MOST_DIGITS: Final = 20


@v_args(inline=True)
class _Compiler(Transformer[Token, Operand]):
    """lark calls these methods for each part it recognises."""

    either = staticmethod(operands.either)
    both = staticmethod(operands.both)
    equal = staticmethod(operands.equal)
    is_null = staticmethod(operands.is_null)
    between = staticmethod(operands.between)
    not_between = staticmethod(operands.not_between)
    minus = staticmethod(operands.minus)
    negation = staticmethod(operands.negation)

    def unequal(self, left: Operand, right: Operand) -> Operand:
        return operands.negation(operands.equal(left, right))

    def is_not_null(self, operand: Operand) -> Operand:
        return operands.negation(operands.is_null(operand))

    def ordered(self, left: Operand, symbol: Token, right: Operand) -> Operand:
        return operands.compare(str(symbol), left, right)

    def text_test(self, operand: Operand, word: Token, text: Token) -> Operand:
        return operands.text_test(word.upper(), operand, _text(text), negated=False)

    def not_text_test(self, operand: Operand, word: Token, text: Token) -> Operand:
        return operands.text_test(word.upper(), operand, _text(text), negated=True)

    def one_of(self, operand: Operand, *choices: Token) -> Operand:
        return operands.one_of(operand, [_text(choice) for choice in choices], negated=False)

    def none_of(self, operand: Operand, *choices: Token) -> Operand:
        return operands.one_of(operand, [_text(choice) for choice in choices], negated=True)

    def text(self, token: Token) -> Operand:
        return operands.literal(Kind.TEXT, _text(token))

    def whole(self, token: Token) -> Operand:
        digits = token.rstrip("lL")
        value = int(digits) if len(digits) <= _MOST_DIGITS else operands.LONG_LIMIT
        if value >= operands.LONG_LIMIT:
            raise SqlError(f"{digits[:40]} does not fit into 64 bits")
        return operands.literal(Kind.INT if value < operands.INT_LIMIT else Kind.LONG, value)

    def decimal(self, token: Token) -> Operand:
        value = float(token)
        if value in (0.0, float("inf")):
            raise SqlError(f"{token[:40]} is too small or too large")  # the official parser refuses 0.0 too
        return operands.literal(Kind.DOUBLE, value)

    def true(self) -> Operand:
        return operands.literal(Kind.TRUTH, True)

    def false(self) -> Operand:
        return operands.literal(Kind.TRUTH, False)

    def null(self) -> Operand:
        return operands.literal(Kind.TRUTH, None)

    def name(self, token: Token) -> Operand:
        return operands.read_property(str(token))


def _text(token: Token) -> str:
    return token[1:-1].replace("''", "'")


@functools.cache
def _parser(is_5: bool) -> Lark:
    """In the 4.9 line CONTAINS, STARTSWITH and ENDSWITH are ordinary names."""
    lines = GRAMMAR.splitlines()
    if not is_5:
        lines = [line for line in lines if "TEXT_TEST" not in line]
    return Lark("\n".join(lines), parser="lalr", lexer="basic", transformer=_Compiler())


def read_expression(expression: str, *, is_5: bool = True) -> Operand:
    """The compiled expression. Raises `SqlError`."""
    parser: Any = _parser(is_5).parse_interactive(expression)
    try:
        try:
            for number, token in enumerate(parser.lexer_thread.lex(parser.parser_state)):
                parser.feed_token(token)
                if number == MAX_TOKENS:
                    raise SqlError(f"more than {MAX_TOKENS} words and signs")
                if len(parser.parser_state.state_stack) > MAX_OPEN:
                    raise SqlError(f"more than {MAX_OPEN} parts inside one another")
            operand: Any = parser.feed_eof()
        except UnexpectedToken:
            if "$END" not in parser.accepts():
                raise
            operand = parser.feed_eof()  # the rest after a whole expression is ignored
    except VisitError as error:
        raise SqlError(str(error.orig_exc)) from error
    except (LarkError, SqlError) as error:
        raise SqlError(str(error)) from error
    return operands.truth(operand)
