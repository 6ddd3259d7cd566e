"""The official example programs (org.apache.rocketmq.example): each message arrives once, in order, and is committed.

Reading order: `printed` (what the examples print, as values), `stage` and `ExampleStage.java` (many examples in
one JVM), `world` (one server, one client version and all that was sent there), `conftest` (which combinations
run), then the tests; `table` (every example, and which test plays it).
"""
