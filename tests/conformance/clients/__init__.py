"""Clients of other languages and our own Python clients, on official servers and on ours."""
