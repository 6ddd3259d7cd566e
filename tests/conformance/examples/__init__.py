"""The official example programs (org.apache.rocketmq.example): each prints its lines, and commits what it read.

Reading order: `table` (every example, what it prints, and which test plays it), `stage` and `ExampleStage.java` (many
examples in one JVM), then the test; `stored` reads messages of pull replies.
"""
