"""Where a consumer without a stored offset begins: as rows of requests and with Java consumers."""
