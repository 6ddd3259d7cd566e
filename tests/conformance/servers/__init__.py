"""Servers of each side in a network of their own, programs that always end, and raw requests to a server."""
