"""Make `rows.tsv`: what official filter modules say about expressions, written by hand and by dice.

    python tests/broker/filters/sql/record_rows.py ~/.cache/pocketmq-peers/55/lib ~/.cache/pocketmq-peers/49/lib

The program that asks them is `FilterRows.java` (one file, run by `java` itself). The last two cells are what
5.5 and 4.9 say; 4.9 knows neither STARTSWITH nor ENDSWITH. `test_sql_filter.py` reads the table.
"""

import random
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CELLS = r"""

a=5 b=x c=true
a=-3 b=7 d=2.5
a=abc b=abc c=TRUE d=1e3
a=3000000000 c=no d=NaN
a=0 b=0.0 c=-0.0 d=Infinity
a=\s5 b=1_0 c=0x1p3 d=5d
a=+7 b=it''s c=a\\ d=٣
"""[1:-1].split("\n")
"""Properties of messages, in the form `FilterRows.java` reads; the first has none."""
HAND = r"""
a = 5|a = '5'|5 = a|a = 5.0|a > 4|a > 4.9|a >= 5|4 < a|a < 'x'|'x' < a|a > b|a = b|a <> b|b = a|x = y
x = a|a = x|NOT a = 5|NOT (a = 5)|NOT a|NOT NOT c|a|c|a OR TRUE|TRUE OR a = 'x'|c = TRUE|TRUE = c
FALSE = FALSE|TRUE = 1|1 = TRUE|a IS NULL|a IS NOT NULL|x IS NULL|NULL IS NULL|5 IS NULL|NULL = a
a = NULL|a <> NULL|NULL|TRUE|FALSE|5|'x'|-a|-5|-a IS NULL|-5 = a|a = -3|a = - -3|a = --3|a = -'x'
- (a = 5)|a BETWEEN 1 AND 5|a BETWEEN 5 AND 1|a BETWEEN -3 AND -5|a NOT BETWEEN 1 AND 4|a BETWEEN b AND d
a BETWEEN '1' AND '5'|a BETWEEN NULL AND 5|a BETWEEN 1.5 AND 7|a BETWEEN 1 AND 0.5|a IN ('5','abc')
a NOT IN ('5')|a IN (5)|a IN ()|'a' IN ('a')|(a) IN ('5')|x IN ('y')|x NOT IN ('y')
a IN ('1','2','3','4','5','6')|a CONTAINS 'b'|a NOT CONTAINS 'b'|x CONTAINS 'b'|x NOT CONTAINS 'b'
a CONTAINS ''|a NOT CONTAINS ''|a CONTAINS b|5 CONTAINS '5'|a STARTSWITH 'a'|a ENDSWITH 'c'
a NOT STARTSWITH 'a'|a NOT ENDSWITH 'c'|'abc' CONTAINS 'b'|a STARTSWITH '5' ENDSWITH '5'|b = 'it''s'
c = 'a\\'|c = 'a\\\\'|b = 'a\\bc'|b CONTAINS '''|a LIKE 'x'|a != 5|a == 5|a && b|a = 5 b = 6|a = 5 ) b
a = 5 -- rest|a = 5 --c\n AND b = 'x'|a = 5 /* c */ AND b = 'x'|a = 5 /**/|a = 5 /* open|a = 007|a = 0
a = 5L|a = 5l|a = 0L|a = 05|a = 3000000000|a > 3000000000|a = 3000000000L|a = 9223372036854775807
a = 9223372036854775808|a = 99999999999999999999999|a = -9223372036854775808|a = 1e3|d = 1e3|d = 1000
d > 2|d = 0.0|d = 0|d > .5|d = 5.|d = 1e400|d = 1e-400|d = 5.5E+1|d = 5E|a.b = 5|a .5|_a = 5|$a = 5
a$ = 5|ANDROID = 'x'|aNd = 1|And|a and b|a And c = 'true'|é = 5|a = 'é'|a = "5"|a = `5`|@a = 1|(a = 5)
((a = 5))|(a = 5|a = 5)|()||  |a =|= 5|a IS|a IS NOT|a NOT|a NOT 5|a BETWEEN 1|a BETWEEN 1 AND|a IN
a IN (|a IN ('x'|a = 5 AND b = 'x' OR c = 'no'|a = 1 OR b = 'x' AND c = 'no'|x = 1 AND a = 5
x = 1 AND a = 6|x = 1 OR a = 5|x = 1 OR a = 6|a > 1 AND a > 2 AND a > 3|(a > 1) = TRUE|(a > 1) = c
c = (a > 1)|(a > 1) = (a > 2)|(a > 1) > 2|a > 1 > 2|a = b = c|a = 5 = TRUE|(a > 1) CONTAINS 'x'
(a > 1) IS NULL|(x > 1) IS NULL|(a = 5) IN ('x')|+a = 5|+5 = a|a = +5|+'x' = a|NOT + a|+ NOT c|a + 5 = 10
a > 'x'|a > TRUE|a > NULL|TRUE > a|a <> 'x'|a <> 5|'a' = 'a'|'a' = 'b'|1 = 1|1 < 2|1.5 > 1|2 = 2.0
'1' = 1|1 = '1'|'x' = 1|'true' = TRUE|TRUE = 'true'|TRUE = TRUE|TRUE = NULL|NULL <> TRUE|-5 = TRUE
TRUE = -5|-TRUE IS NULL|-1 < 0|-1.5 < 0|- 'a' IS NULL|a\t=\t5|a\n=\n5|a\f=\r5|a=5|a>4AND b='x'|a=5OR b=7
a=5and1=1|1=1and a=5|5=a|'x'=b|b='x'AND a=5|TRUEb|NOTa|NULLa = 5|a > b AND b = 'x'|d > a|d >= b|b < d
c = d|a > d OR TRUE|a = d OR TRUE|a = 'x' OR a = 5|a = 5 OR a = 'x'|a = 9 AND x = 1
""".strip()


def disjunction(dice: random.Random, depth: int) -> str:
    word = dice.choice([" OR ", " AND ", " or ", " and "])
    return word.join(equality(dice, depth) for _ in range(dice.choice([1, 1, 2, 3])))


def equality(dice: random.Random, depth: int) -> str:
    left = comparison(dice, depth)
    match dice.randrange(8):
        case 0 | 1:
            return f"{left} = {comparison(dice, depth)}"
        case 2:
            return f"{left} <> {comparison(dice, depth)}"
        case 3:
            return left + dice.choice([" IS NULL", " IS NOT NULL"])
    return left


def comparison(dice: random.Random, depth: int) -> str:
    left = unary(dice, depth)
    negated = dice.choice(["", "NOT "])
    match dice.randrange(8):
        case 0 | 1:
            return f"{left} {dice.choice(['<', '<=', '>', '>='])} {unary(dice, depth)}"
        case 2:
            return f"{left} {negated}BETWEEN {unary(dice, 0)} AND {unary(dice, 0)}"
        case 3:
            return f"{left} {negated}IN ({', '.join(text(dice) for _ in range(dice.choice([1, 2, 6])))})"
        case 4:
            return f"{left} {negated}{dice.choice(['CONTAINS', 'STARTSWITH', 'ENDSWITH'])} {text(dice)}"
    return left


def unary(dice: random.Random, depth: int) -> str:
    sign = dice.choice(["", "", "", "", "", "", "-", "+", "NOT "])
    if depth > 0 and dice.random() < 0.3:
        return f"{sign}({disjunction(dice, depth - 1)})"
    number = ["5", "0", "-3", "7", "3000000000", "2.5", "1e3", "5.0", "-2.5", "1000"]
    return sign + dice.choice(
        [dice.choice("abcdx"), dice.choice("abcd"), dice.choice(number), text(dice), "TRUE", "NULL"]
    )


def text(dice: random.Random) -> str:
    return f"'{dice.choice(['5', 'x', 'abc', 'b', 'true', '-3', '2.5', ''])}'"


def asked(lib: str, lines: list[str]) -> list[str]:
    command = ["java", "-cp", f"{lib}/*", str(HERE / "FilterRows.java")]
    run = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def main() -> None:
    dice = random.Random(92)
    hand = [text for line in HAND.splitlines() for text in line.split("|")]
    hand += ["(" * depth + "a = 5" + ")" * depth for depth in (10, 100)]
    hand += [" AND ".join(["a = 5"] * 300), " OR ".join(["a = 6"] * 300)]
    lines = [f"{expression}\t{cell}" for expression in hand for cell in CELLS]
    lines += [f"{disjunction(dice, 3)}\t{dice.choice(CELLS)}" for _ in range(6000)]
    newer, older = (asked(lib, lines) for lib in sys.argv[1:])
    rows, refused = [], 0
    for row, old_row in zip(newer, older, strict=True):
        answer, old_answer = row[-1], old_row[-1]
        if answer == "X":
            refused += 1
            if refused % 8:
                continue
        rows.append(f"{row}\t{old_answer}")
        if answer != old_answer and "STARTSWITH" not in row and "ENDSWITH" not in row:
            print("the lines differ:", row, old_answer)
    (HERE / "rows.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    print(len(rows), "rows")


if __name__ == "__main__":
    main()
