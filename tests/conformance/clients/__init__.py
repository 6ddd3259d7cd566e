"""Our own Python clients on official servers, and Java clients beside them; the examples in other languages."""
