"""`pocketmq` and `python -m pocketmq.cli`: where the program begins.

Its imports take a tenth of a second, and this file is what catches Ctrl-C until they are done; from then on `main.py`
does. Nothing is imported at its top.
"""


def run(words: list[str] | None = None) -> None:
    """The program, with the words of the command line unless others are given."""
    import os
    import signal
    import sys

    interrupted = 130  # as `mistakes.INTERRUPTED`, which needs imports
    try:
        is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if is_default:  # nothing is open yet; and Python loses some exceptions that are raised in an import
            signal.signal(signal.SIGINT, lambda number, frame: os._exit(interrupted))
        from .main import main

        if is_default:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        main(words, prog_name="pocketmq")
    except KeyboardInterrupt:
        sys.exit(interrupted)


if __name__ == "__main__":
    run()
