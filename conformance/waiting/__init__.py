"""Messages that wait: delayed, timed, popped and half messages."""
