"""Rows of requests and answers, asked of ours and of both official brokers."""
