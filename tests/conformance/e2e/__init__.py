"""The official end-to-end suite, `apache/rocketmq-e2e`, by hand: docs/grpc.md has its lists.

    git clone https://github.com/apache/rocketmq-e2e
    python -m conformance.e2e.java_suite rocketmq-e2e SIDE     24 classes, three minutes
    python -m conformance.e2e.go_suite rocketmq-e2e SIDE       6 tests, three minutes

SIDE is one of `sides`; both print a line for each test. Maven, Java, Go and network namespaces are needed.

sides.py         the servers: ours in three ways, the official proxy
java_suite.py    compiles the Java tests and runs them with the client 5.0.7
RunSuite.java    runs test classes in one JVM and prints a line for each test
go_suite.py      builds the Go tests, with the client they name or with 5.1.4, and runs them
"""
