"""What every call of Spark into a reader is wrapped in, on its way through Spark's Python workers."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import PipelineError
from ..planning.gc_freeze import freeze_imports


@contextmanager
def in_worker() -> Iterator[None]:
    """Keeps imports out of garbage collection, and errors short: Spark prints an error with all its causes and their
    stacks as one text, in which the user would have to look for the reason. The message names that already."""
    freeze_imports()
    try:
        yield
    except PipelineError as error:
        raise error.with_traceback(None) from None
