"""What records `tests/golden` from official programs: `make golden`."""
