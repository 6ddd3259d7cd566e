"""Apache RocketMQ itself, from its published jars: it decides every question about behaviour.

Reading order: `jars` (fetching them, command lines over them), `servers` (name server and broker), `programs`
(the example programs, mqadmin and small Java programs of our own), `AdminShell.java` (many mqadmin commands
in one JVM), `beside` (our Java programs beside a server in the process of the test).
"""
