"""`python -m pocketmq.broker` is `pocketmq serve`: another name of the program. Nothing imports this file."""

import sys

from pocketmq.cli.__main__ import run

run(["serve", *sys.argv[1:]])
