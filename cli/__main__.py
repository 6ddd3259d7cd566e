"""`python -m pocketmq.cli` is `pocketmq`."""

from .main import main

main(prog_name="pocketmq")
