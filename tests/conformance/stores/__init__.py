"""One store directory, opened by official brokers and by ours in turns."""
