"""`python -m pocketmq.broker` is `pocketmq serve`."""

from .serve_command import serve

serve(prog_name="python -m pocketmq.broker")
