"""The gRPC endpoint beside the official proxy in LOCAL mode: the same clients, the same requests, the same answers.

side.py              our endpoint and the official proxy as servers of a test
rows.py              requests and the refusals that both sides give
announcing.py        settings of a client, and its telemetry stream
test_rows.py         each row and each route on both
test_settings.py     settings and lives of clients on both
test_signatures.py   signatures and rights on both
test_sends.py        stored messages on both
test_exchanges.py    receives, transactions, questions on both
test_consumption.py  order, retries, handles, dead letters, filters, delays on both
java_clients.py      official Java clients of two versions
test_java.py         a Java producer, with and without TLS and credentials
"""
