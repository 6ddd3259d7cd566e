"""Messages that are not delivered at once: delayed, timed, popped and half messages."""
