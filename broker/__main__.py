"""`python -m pocketmq.broker` is `pocketmq serve`: another name of the program. Nothing imports this file."""

import sys

from pocketmq.cli.main import main

main(["serve", *sys.argv[1:]], prog_name="pocketmq")
