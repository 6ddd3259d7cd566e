"""What clients do while their brokers have trouble: the same scenarios for each, and the document that compares them.

`clients` (how each is run), `document` (writes docs/behaviour.md), `test_behaviour.py` (each client plays a scenario);
the clients: `python_client.py`, `BehaveClient.java`, `cpp_client.py`, `javascript_client.js`, the folders `go`, `rust`;
for the gRPC port `grpc_python_client.py` and `BehaveGrpcClient.java`.
"""
