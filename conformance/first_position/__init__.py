"""Where a consumer without a stored offset begins: the project's promise, as rows and with Java consumers."""
